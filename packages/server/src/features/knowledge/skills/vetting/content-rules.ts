export interface ContentRule {
  readonly id: string;
  readonly severity: 'CRITICAL' | 'WARN';
  readonly category: string;
  readonly description: string;
  /** Every quantifier is bounded, so that no text makes the search slow. Matched against folded text. */
  readonly matches: RegExp;
  /** `line`: one command, with continuation lines. `block`: neighbouring lines, joined by " ; ". `prose`: the same outside code, joined by spaces. */
  readonly over: 'line' | 'block' | 'prose';
}

const fetches = '(?:curl|wget|aria2c|iwr|irm|invoke-webrequest|invoke-restmethod|certutil)';
const shells = '(?:(?:ba|z|da|k|fi|c|tc)?sh|pwsh|powershell|iex|invoke-expression|osascript)';
/** Shells run any input; interpreters run their arguments, unless they have none. */
const runner = `(?:${shells}\\b(?!\\s{1,4}-n\\b)|(?:python[\\d.]{0,5}|node|perl|ruby|php|deno|bun)\\s{0,4}(?:-\\s{0,4})?(?:$|[;&|)\`"']))`;
const behindPipe = `\\|\\s{0,8}(?:(?:/(?:usr/)?bin/)?(?:sudo|env|nohup|exec)\\s{1,4}(?:-\\w{1,20}\\s{1,4}){0,4}){0,3}(?:/(?:usr/)?(?:local/)?bin/)?${runner}`;
const secretFiles =
  '(?:\\.ssh/(?:id_\\w{1,20}(?!\\w{0,20}\\.pub)|\\*|authorized_keys)|\\.aws/credentials|\\.netrc|\\.git-credentials|\\.gnupg|\\.docker/config\\.json|\\.gatehouse/|\\.openclaw/|Library/Keychains|Login Data|cookies\\.sqlite|wallet\\.dat|/etc/shadow|install\\.key)';
const dumps =
  '(?:\\bprintenv\\b|\\benv\\s{0,4}(?:\\||>|\\))|\\$\\(env\\)|process\\.env\\b(?!\\.)|os\\.environ\\b(?!\\s{0,2}[.[])|/proc/(?:self|\\d{1,7})/environ|Get-ChildItem\\s{1,4}env:)';
const sends = `(?:\\b${fetches}\\b[^\\n]{0,200}(?:\\s-(?:d|F|T|X)\\b|--data|--form|--upload|-Body|\\?\\w{0,20}=\\$|@)|requests\\.(?:post|put|get)|axios|\\bfetch\\(|urlopen|http\\.request|\\bnc\\b|\\bscp\\b|\\brsync\\b|\\bnslookup\\b|\\bdig\\b|sendDocument)`;

function rule(
  id: string,
  severity: ContentRule['severity'],
  category: string,
  over: ContentRule['over'],
  description: string,
  pattern: string | RegExp,
): ContentRule {
  return { id, severity, category, over, description, matches: typeof pattern === 'string' ? new RegExp(pattern, 'i') : pattern };
}

/** Text that a skill must not contain. CRITICAL: no honest skill needs it. WARN: a person should check it. */
export const contentRules: readonly ContentRule[] = [
  rule('EXEC_PIPE_BASH', 'CRITICAL', 'execution', 'block', 'passes a download to an interpreter', `\\b${fetches}\\b[^\\n]{0,400}${behindPipe}`),
  rule(
    'EXEC_SUBSHELL',
    'CRITICAL',
    'execution',
    'line',
    'runs what a substituted command downloads or decodes',
    `(?:\\b(?:${shells}|eval|source|exec|python[\\d.]{0,5}|node|perl)\\b(?:\\s{1,4}-\\w{1,20}){0,4}|^\\s{0,8}\\.)\\s{0,4}(?:<\\s{0,2})?["']?(?:\\$\\(|<\\(|\`)\\s{0,4}(?:sudo\\s{1,4})?[^)\`\\n]{0,120}\\b(?:${fetches}|base64|xxd|openssl)\\b`,
  ),
  rule('EXEC_BACKTICK', 'CRITICAL', 'execution', 'prose', 'wants a command run while the text is loaded', /(?:^|\s)!`[^`\n]{1,400}`/),
  rule(
    'EXEC_EVAL',
    'CRITICAL',
    'execution',
    'block',
    'evaluates code that is decoded or fetched',
    `\\b(?:eval|exec|execSync|execFileSync|spawnSync|new Function|Function|__import__|marshal\\.loads|pickle\\.loads|iex|invoke-expression|os\\.system|os\\.popen|subprocess\\.(?:run|call|Popen|check_output)|shell_exec|passthru)\\b\\s{0,4}[("'\`$\\s][^\\n]{0,200}(?:\\batob\\b|b64decode|base64|fromCharCode|Buffer\\.from|bytes\\.fromhex|unhexlify|rot_?13|urlopen|requests\\.get|urllib|\\bfetch\\(|DownloadString|\\bcurl\\b|\\bwget\\b|zlib\\.decompress)`,
  ),
  rule(
    'EXEC_DECODED',
    'CRITICAL',
    'execution',
    'block',
    'decodes text and evaluates it',
    /(?:\batob\(|b64decode|bytes\.fromhex|unhexlify|FromBase64String|zlib\.decompress)[^\n]{0,300}\b(?:eval|exec|Function|iex|Invoke-Expression|os\.system|subprocess|Assembly\]::Load)\b/i,
  ),
  rule(
    'NET_CURL_PIPE',
    'WARN',
    'network',
    'line',
    'pipes a download into another program',
    `\\b${fetches}\\b[^|\\n]{0,300}\\|\\s{0,8}(?:sudo\\s{1,4})?${shells}\\b`,
  ),
  rule(
    'NET_WGET_EXEC',
    'WARN',
    'network',
    'block',
    'makes a download executable',
    `\\b${fetches}\\b[^\\n]{0,300}(?:&&|;|\\bthen\\b)\\s{0,8}(?:sudo\\s{1,4})?chmod\\s{1,4}[^\\s]{0,8}[x7]`,
  ),
  rule(
    'NET_DOWNLOAD_RUN',
    'CRITICAL',
    'network',
    'block',
    'downloads a file to a temporary folder and runs it',
    `\\b(?:${fetches}|urlretrieve|DownloadFile|requests\\.get)\\b[^\\n]{0,300}(?:/tmp/|/var/tmp/|/dev/shm/|%TEMP%|\\$env:TEMP|\\$TMPDIR)[^\\n]{0,300}(?:;|&&|\\|\\|)\\s{0,8}(?:nohup|sudo|${shells}|python[\\d.]{0,5}|open|start|Start-Process|chmod\\s{1,4}[^\\s]{0,8}[x7]|/tmp/|/var/tmp/|/dev/shm/|\\./|os\\.system|subprocess)`,
  ),
  rule(
    'NET_REVERSE_SHELL',
    'CRITICAL',
    'network',
    'block',
    'opens a remote shell',
    /\/dev\/(?:tcp|udp)\/|\bn(?:c|cat|etcat)(?:\.\w{1,12})?\b[^\n]{0,100}\s(?:-\w{0,6}[ec]\b|--(?:sh-)?exec)[^\n]{0,20}(?:sh|cmd|bash|powershell)|mkfifo[^\n]{0,200}\bnc\b|\bsocat\b[^\n]{0,160}\bexec:|\bpty\.spawn\b|os\.dup2\(\s{0,4}\w{1,20}\.fileno\(\)|Sockets\.TCPClient|\bbash\s{1,4}-i\s{0,4}>|fsockopen\([^\n]{0,200}\b(?:exec|proc_open|sh)\b|net["')]{0,3}\.(?:connect|Socket|createConnection)[^\n]{0,300}(?:spawn|exec)\b|TCPSocket\.(?:new|open)[^\n]{0,200}exec|openssl\s{1,4}s_client[^\n]{0,120}\|\s{0,4}(?:ba)?sh/i,
  ),
  rule(
    'NET_RAW_ADDRESS',
    'CRITICAL',
    'network',
    'line',
    'contacts a server by its number instead of a name',
    /https?:\/\/(?!(?:0|10|127|169\.254|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.)(?:\d{1,3}\.){3}\d{1,3}\b|https?:\/\/0x[0-9a-f]{8}\b|https?:\/\/\d{8,10}[/:]/i,
  ),
  rule(
    'EXFIL_HOST',
    'CRITICAL',
    'exfiltration',
    'line',
    'names a service that collects data sent to it',
    /\b(?:webhook\.site|requestbin\.\w{2,6}|burpcollaborator\.net|interact\.sh|oast\.(?:pro|live|fun|me|site|online)|pipedream\.net|dnslog\.cn|ceye\.io|beeceptor\.com)\b|api\.telegram\.org\/bot\d{6,}|discord(?:app)?\.com\/api\/webhooks\/\d{6,}/i,
  ),
  rule(
    'EXFIL_LINK',
    'CRITICAL',
    'exfiltration',
    'prose',
    'puts data into the address of an image or a link',
    /!\[[^\]\n]{0,100}\]\(https?:\/\/[^)\s]{1,300}(?:\{|\$|%7b|<)[^)\n]{0,200}\)|\b(?:render|include|append|insert|add|end)\b[^.\n]{0,60}\b(?:image|link|url|pixel)\b[^\n]{0,120}https?:\/\/[^\s)]{1,200}[?&]\w{1,20}=(?:\{|\$|<|\[)/i,
  ),
  rule(
    'SECRET_READ',
    'CRITICAL',
    'secrets',
    'line',
    'reads files that hold keys',
    `(?:\\b(?:cat|cp|mv|tar|zip|base64|less|head|tail|type|xxd|get-content|grep|security|sqlite3)\\b|\\bopen\\(|readFile\\w{0,5}\\(|read_text)[^\\n]{0,120}${secretFiles}|find-generic-password|dump-keychain`,
  ),
  rule(
    'SECRET_EXFIL',
    'CRITICAL',
    'secrets',
    'block',
    'sends keys or the environment away',
    `(?:${dumps}|${secretFiles}|(?:^|[\\s/"'@])\\.env\\b)[^\\n]{0,400}${sends}|${sends}[^\\n]{0,300}(?:${dumps}|${secretFiles}|@\\.?/?\\.env\\b)`,
  ),
  rule(
    'SECRET_REQUEST',
    'CRITICAL',
    'secrets',
    'prose',
    'requests keys or earlier text to be sent away',
    /\b(?:send|post|upload|e-?mail|forward|exfiltrate|transmit|leak|report|copy|submit)\b[^.\n]{0,100}\b(?:api[ _-]?keys?|passwords?|credentials?|secrets?|tokens?|private[ _-]keys?|ssh[ _-]keys?|seed[ _-]phrases?|mnemonics?|wallets?|environment variables|cookies|conversation|chat history|memories|memory)\b[^.\n]{0,80}\b(?:to|at|with)\s{1,3}(?:https?:|the (?:address|url|server|endpoint|account) |this (?:url|address|server|endpoint)|[\w.+-]{1,64}@[\w-]{1,64}\.|@\w)/i,
  ),
  rule(
    'SECRET_ASK',
    'CRITICAL',
    'secrets',
    'prose',
    'asks the user for a secret that no skill needs',
    /\b(?:ask|request|prompt|require|have)\b[^.\n]{0,40}\b(?:user|owner|operator|human)\b[^.\n]{0,60}\b(?:seed phrase|recovery phrase|mnemonic|private key|master password|keychain password|login password|sudo password|system password)\b/i,
  ),
  rule('ENV_PRINTENV', 'WARN', 'secrets', 'line', 'prints the environment', /\bprintenv\b/i),
  rule('ENV_PROC_ENVIRON', 'WARN', 'secrets', 'line', 'reads the environment of a process', /\/proc\/(?:self|\d{1,7}|\$\w{1,20}|\*)\/environ/i),
  rule(
    'ENV_MASS_DUMP',
    'WARN',
    'secrets',
    'line',
    'takes the whole environment',
    /(?:^|[;&|(`\s])env\s{0,4}(?:\||>)|JSON\.stringify\(\s{0,4}process\.env|dict\(\s{0,4}os\.environ|print\(\s{0,4}os\.environ\s{0,4}\)|Get-ChildItem\s{1,4}env:/i,
  ),
  rule('CRYPTO_STRATUM', 'CRITICAL', 'mining', 'line', 'speaks to a mining pool', /stratum\+(?:tcp|ssl|tls):/i),
  rule(
    'CRYPTO_MINER_BINARY',
    'CRITICAL',
    'mining',
    'line',
    'runs a miner',
    /\b(?:xmrig|cpuminer|minerd|nbminer|phoenixminer|lolminer|ethminer|xmr-stak)\b/i,
  ),
  rule(
    'CRYPTO_POOL_DOMAIN',
    'WARN',
    'mining',
    'line',
    'names a mining pool',
    /\b(?:minexmr|nanopool|2miners|f2pool|supportxmr|hashvault|moneroocean|nicehash)\.(?:com|org|pro|stream|io)\b/i,
  ),
  rule(
    'OBF_BASE64_DECODE_PIPE',
    'CRITICAL',
    'obfuscation',
    'block',
    'decodes text and runs it',
    `\\b(?:base64\\s{1,4}(?:-d|-D|--decode)|xxd\\s{1,4}-\\w{0,4}r|openssl\\s{1,4}(?:enc|base64)\\b[^|\\n]{0,120}\\s-d|gunzip|zcat|rev|tr\\s{1,4}['"]?[A-Za-z])[^\\n]{0,200}${behindPipe}`,
  ),
  rule(
    'OBF_ENCODED_COMMAND',
    'CRITICAL',
    'obfuscation',
    'line',
    'runs an encoded command',
    /\b(?:powershell|pwsh)(?:\.exe)?\b[^\n]{0,160}\s-e(?:nc|c|ncodedcommand)?\s{1,4}[A-Za-z0-9+/=]{20}/i,
  ),
  rule(
    'OBF_CHARACTERS',
    'CRITICAL',
    'obfuscation',
    'block',
    'spells a command in numbers',
    /fromCharCode\((?:\s{0,4}(?:0x[0-9a-f]{1,4}|\d{1,5})\s{0,4},){8}|(?:chr\(\d{1,3}\)\s{0,4}[+.]\s{0,4}){6}|(?:\[char\]\d{1,3}\s{0,4}\+?\s{0,4}){6}|\\u00[0-9a-f]{2}(?:\\u00[0-9a-f]{2}){9}|\$'(?:\\(?:x[0-9a-f]{2}|[0-7]{3})){4}/i,
  ),
  rule('OBF_HEX_LONG', 'WARN', 'obfuscation', 'line', 'holds a long row of hex bytes', /(?:\\x[0-9a-f]{2}){20}/i),
  rule(
    'OBF_BASE64_LONG',
    'WARN',
    'obfuscation',
    'line',
    'holds a long row of base64',
    /(?<![A-Za-z0-9+/=-])(?!sha\d{3}-)(?<!base64,)(?=[A-Za-z0-9+/]{0,79}[0-9+/])(?=[A-Za-z0-9+/]{0,79}[A-Z])[A-Za-z0-9+/]{80}/,
  ),
  rule('XML_SKILL_CLOSE', 'CRITICAL', 'prompt', 'line', 'pretends that the skill ends', /<\/(?:available_)?skills?(?:_content|_body)?\s{0,4}>/i),
  rule(
    'XML_SYSTEM_TAG',
    'CRITICAL',
    'prompt',
    'line',
    'pretends to be the system',
    /<\/?(?:system(?:[-_](?:prompt|reminder|message|note))?|developer_message|tool_result|function_results)\s{0,4}>|<\|(?:im_start|im_end|system|endoftext|eot_id|start_header_id)\|?>|\[\/?INST\]|<<\/?SYS>>|<<[^\n<>[]{0,40}untrusted/i,
  ),
  rule(
    'PROMPT_OVERRIDE',
    'CRITICAL',
    'prompt',
    'prose',
    'asks the model to abandon its instructions',
    /(?<!\b(?:not|never|n't)\s{1,3})\b(?:ignore|disregard|forget|override|bypass|discard)\b[^.\n]{0,40}\b(?:previous|prior|above|earlier|preceding|your (?:system|previous|earlier|safety|original|other)|system|initial|original|safety|operator(?:'s)?|all other|any other)\b[^.\n]{0,40}\b(?:instructions?|rules?|prompts?|guidelines?|directives?|constraints?|polic(?:y|ies)|restrictions?|messages?)\b/i,
  ),
  rule(
    'PROMPT_AUTHORITY',
    'CRITICAL',
    'prompt',
    'prose',
    'claims to override its operator',
    /\b(?:supersedes?|overrides?|take(?:s)? (?:precedence|priority) over|replaces?|outranks?)\b[^.\n]{0,40}\b(?:system prompt|system instructions?|system message|operator(?:'s)? (?:instructions?|rules?|wishes)|safety (?:rules?|guidelines?|polic\w{1,5})|previous instructions?|developer instructions?|user(?:'s)? instructions?)\b/i,
  ),
  rule(
    'PROMPT_ROLE',
    'CRITICAL',
    'prompt',
    'prose',
    'assigns the model another role',
    /\byou are (?:now|no longer)\b[^.\n]{0,40}\b(?:unrestricted|unfiltered|jailbroken|dan|root|admin(?:istrator)?|free of|bound by|limited by|subject to|an? (?:different|new) (?:ai|assistant|model))\b|\b(?:dan|jailbreak|god|unrestricted) mode\b|\b(?:no|without)\b[^.\n]{0,20}\b(?:restrictions|guardrails|safety filters)\b[^.\n]{0,40}\b(?:apply|answer|act|respond|comply)\b|\b(?:act|respond|answer|comply)\b[^.\n]{0,40}\bwithout (?:any )?(?:restrictions|guardrails|safety filters|limits)\b/i,
  ),
  rule(
    'PROMPT_CONCEAL',
    'CRITICAL',
    'prompt',
    'prose',
    'wants something kept from the user',
    /\b(?:do not|don't|never|must not|avoid)\s{1,3}(?:ever\s{1,3})?(?:tell(?:ing)?|inform(?:ing)?|alert(?:ing)?|notify(?:ing)?|mention(?:ing)?|reveal(?:ing)?|disclos(?:e|ing))\b(?:\s{1,3}(?:this|it|that|any of this|anything|these steps|the step|the command|the upload))?(?:\s{1,3}(?:to|with))?\s{1,3}(?:the )?(?:user|human|operator|owner|anyone|them)\b(?!\s{1,3}(?:to|which|how)\b)|\bwithout (?:telling|informing|asking|notifying|alerting|the knowledge of)\s{1,3}(?:the )?(?:user|human|operator|owner|anyone)\b|\b(?:silently|secretly|covertly)\s{1,3}(?:send|upload|post|run|execute|install|download|copy|append|forward|collect|read|fetch)\b|\bkeep (?:this|it|these steps) (?:secret|hidden) from (?:the )?(?:user|human|operator|owner)\b/i,
  ),
  rule(
    'GUARD_OFF',
    'CRITICAL',
    'protection',
    'block',
    'turns protection off',
    /(?<!\b(?:not|never|n't)\s{1,3})\b(?:disable|turn off|bypass|circumvent|switch off)\b[^.;\n]{0,40}\b(?:approvals?|the sandbox|the jail|vetting|permission checks?|guardrails?|antivirus|gatekeeper|defender|firewall|endpoint protection)\b|--dangerously-skip-permissions|spctl\s{1,4}--(?:master|global)-disable|\bxattr\s{1,4}-\w{0,4}[cd]\w{0,4}\b|com\.apple\.quarantine|\bsetenforce\s{1,4}0\b|csrutil\s{1,4}disable|DisableRealtimeMonitoring|\bset-executionpolicy\s{1,4}(?:bypass|unrestricted)|-ExecutionPolicy\s{1,4}Bypass[^\n]{0,80}(?:-w(?:indowstyle)?\s{1,4}hidden|http|iex)/i,
  ),
  rule(
    'SOCIAL_DOWNLOAD',
    'CRITICAL',
    'social',
    'prose',
    'has the user fetch and run something that nobody can look into',
    /\b(?:zip|archive|rar|7z|extract|unzip)\b[^\n]{0,160}\bpass(?:word|phrase|code)?\b\s{0,4}(?:is|:|=|`|")|\bpass(?:word|phrase|code)?\b\s{0,4}(?:is|:|=)[^\n]{0,40}\b(?:zip|archive|extract|unzip|7z|rar)\b|\bunzip\s{1,4}-P\b|\b7z\s{1,4}x\s{1,4}-p\w|\b(?:glot\.io|pastebin\.com|rentry\.(?:co|org)|hastebin\.com|termbin\.com|ix\.io|0x0\.st|transfer\.sh|controlc\.com)\/[^\n]{0,200}\b(?:run|execute|paste|terminal|bash|sh)\b|\b(?:run|execute|paste|copy)\b[^\n]{0,160}\b(?:glot\.io|pastebin\.com|rentry\.(?:co|org)|hastebin\.com|termbin\.com|ix\.io|0x0\.st|transfer\.sh|controlc\.com)\b/i,
  ),
  rule(
    'PERSIST_BACKDOOR',
    'CRITICAL',
    'persistence',
    'block',
    'persists on the machine',
    `>>?\\s{0,4}\\S{0,60}(?:authorized_keys|ld\\.so\\.preload|/etc/sudoers)|\\bNOPASSWD\\b|\\b(?:crontab|/etc/cron|launchctl|LaunchAgents|systemctl|schtasks|\\.bashrc|\\.zshrc|\\.profile|\\.bash_profile|core\\.hooksPath|\\.git/hooks/)[^\\n]{0,300}\\b(?:${fetches}|base64|nohup|/dev/tcp|\\bnc\\b)|\\b(?:${fetches}|base64|nohup)\\b[^\\n]{0,300}(?:\\|\\s{0,4}crontab\\b|>>?\\s{0,4}\\S{0,40}(?:\\.bashrc|\\.zshrc|\\.profile|\\.bash_profile)|LaunchAgents|/etc/cron)`,
  ),
  rule(
    'PERSIST_PROMPT',
    'CRITICAL',
    'persistence',
    'block',
    'writes itself into the files that make up the agent',
    /\b(?:append|add|write|insert|copy|echo|modify|edit|overwrite|save|put)\b[^.;\n]{0,160}\b(?:SOUL|MEMORY|HEARTBEAT|IDENTITY|BOOT|BOOTSTRAP)\.md\b|>>?\s{0,4}\S{0,60}(?:SOUL|MEMORY|HEARTBEAT|IDENTITY|BOOTSTRAP|AGENTS|USER)\.md\b/i,
  ),
  rule(
    'DESTRUCTION',
    'CRITICAL',
    'destruction',
    'line',
    'destroys data that is not its own',
    /\brm\s{1,4}(?:-{1,2}[\w-]{1,20}\s{1,4}){0,4}-\w{0,6}[rR]\w{0,6}\s{1,4}(?:-{1,2}[\w-]{1,20}\s{1,4}){0,4}["']?(?:\/(?:\*|\s|"|'|$)|~\/?(?:\*|\s|$)|\$\{?HOME\}?["']?\/?(?:\*|\s|$)|\/(?:etc|usr|home|var|boot|root)\/?(?:\*|\s|$))|--no-preserve-root|:\(\)\s{0,4}\{\s{0,4}:\s{0,4}\|\s{0,4}:\s{0,4}&|\bmkfs(?:\.\w{1,8})?\s{1,4}\/dev\/|\bdd\s{1,4}[^\n]{0,80}of=\/dev\/(?:sd|nvme|hd|disk|mmc)|\bshred\b[^\n]{0,60}(?:~|\$HOME|\/home)|Remove-Item[^\n]{0,60}-Recurse[^\n]{0,60}(?:C:\\|\$HOME|\$env:USERPROFILE)/,
  ),
  rule(
    'SUPPLY_CHAIN',
    'CRITICAL',
    'supply',
    'line',
    'installs a package from an unreviewed source',
    /\bpip3?\s{1,4}install\b[^\n]{0,160}(?:--(?:extra-)?index-url|--trusted-host|\s-i)[\s=]{1,4}(?!https:\/\/(?:pypi\.org|download\.pytorch\.org)\b)\S|\b(?:pip3?|uv pip)\s{1,4}install\b[^\n]{0,120}\shttp:|\b(?:npm|pnpm|yarn)\s{1,4}(?:i|install|add)\b[^\n]{0,120}\s(?:--registry[\s=]{1,4}(?!https:\/\/registry\.npmjs\.org)|https?:\/\/\S{1,300}\.tgz)|\bnpx\s{1,4}(?:-\w{1,8}\s{1,4}){0,3}https?:/i,
  ),
  rule(
    'HIDDEN_MARKUP',
    'CRITICAL',
    'hidden',
    'line',
    'hides text from readers of the page',
    /style\s{0,4}=\s{0,4}["'][^"']{0,200}(?:display\s{0,4}:\s{0,4}none|font-size\s{0,4}:\s{0,4}0|visibility\s{0,4}:\s{0,4}hidden|opacity\s{0,4}:\s{0,4}0(?![.\d])|(?<!-)color\s{0,4}:\s{0,4}(?:#fff(?:fff)?\b|white|transparent))/i,
  ),
];

/** An instruction to a model where no reader looks: in a comment of HTML or Markdown. */
export const hiddenOrder: ContentRule = rule(
  'HIDDEN_COMMENT',
  'CRITICAL',
  'hidden',
  'prose',
  'speaks to the model where no reader looks',
  /\b(?:assistant|agent|ai|llm|model|claude|gpt|gemini|bot)s?\b[^.]{0,120}\b(?:must|should|shall|always|run|execute|send|ignore|fetch|call|install|read|include|first|instead|reply|respond|upload)\b|\b(?:must|always|first|before|instead|now|also)\b[^.]{0,60}\b(?:run|execute|send|fetch|install|upload|read|include|append)\b[^.]{0,120}\b(?:https?:|curl|wget|~\/|secret|key|token|password|file|command)/i,
);
