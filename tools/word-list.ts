/** Phrases that CONTRIBUTING's glossary replaces. Ordinary words are listed only as the phrases and identifiers in which they are misused. */
export interface Phrase {
  readonly find: RegExp;
  /** What to write instead. */
  readonly write: string;
}

export const phrases: readonly Phrase[] = [
  // Verbs
  { find: /\bgives\b(?! (?:up|way)\b)|\b(?:hand(?:s|ed|ing)?|gave|given|giving) back\b/gi, write: 'return(s)' },
  { find: /\bwhoever\b|\bwho (?:asks|asked|calls|called)\b/gi, write: 'caller, requester, owner, user' },
  { find: /(?:^|[.;*] |['"`])Who (?:may|cannot|can|has|had|[a-z]+s) [^?\n]*$/gm, write: 'a noun: the caller, a client' },
  { find: /\b(?:tells?|told|telling)\b/gi, write: 'notify, report, announce' },
  { find: /\bnews\b|(?<=[a-z])News(?=[A-Z]|\b)|\bnews(?=[A-Z])/g, write: 'announcement' },
  { find: /\b(?:go|goes|gone|going|went) on\b(?! to\b| the\b| top\b)|\bgoesOn\b/g, write: 'continue, resume' },
  { find: /\banew\b/gi, write: 'again' },
  { find: /\bset(?:s|ting)? (?:(?:it|them|something|work) )?going\b/gi, write: 'start, launch, trigger' },
  { find: /\b(?:that|which) (?:waits?|stands?)\b/gi, write: 'pending, waiting, queued' },
  { find: /\bstands\b(?! for\b)|\bwhere(?:ver)? (?:it|they|he) stands?\b/gi, write: 'is declared, is defined, lives in' },
  { find: /\badministrat(?:e|es|ed|ing)\b/gi, write: 'administer' },
  { find: /\bthe chosen\b/gi, write: 'selected' },
  { find: /\b(?:cannot|can't|never) be taken back\b/gi, write: "can't be undone" },
  { find: /\bhas not begun\b/gi, write: 'failed to start, has not started' },
  { find: /\bclocks? (?:is|are|was|were) set back\b/gi, write: 'clocks go back (DST)' },
  { find: /\bends? (?:the|its|a|this|that|each|every|all) (?:process|processes|daemon|program|child|command)\b/gi, write: 'terminate, stop' },
  { find: /\blooks? (?:whether|after it)\b|\b(?:a|one|each|every|first|next|last|no|another) looks?\b/gi, write: 'check, poll' },
  // Prepositions
  { find: /\bin (?:the )?place of\b/gi, write: 'instead of' },
  { find: /(?<!\bno fault )\bof (?:its|their|his|her|your|our|my) own\b/gi, write: 'own, separate' },
  { find: /\bbesides?\b/gi, write: 'next to, along with' },
  {
    find: /(?<!\bthere )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|better\b|worse\b|such\b|other\b|one\b|doubt\b)[a-z]+/gi,
    write: 'not a X, not valid X',
  },
  { find: /\bby (?:itself|themselves)\b/gi, write: 'on its own, automatically' },
  { find: /\b[a-z]+s in a row\b/gi, write: 'consecutive' },
  // Nouns, as metaphors
  { find: /\bdoors?\b|(?<=[a-z])Doors?(?=[A-Z]|\b)|\bDoors?[A-Z]\w*/g, write: 'listeners, transports, routes' },
  { find: /\bhands\b(?! (?:over|off)\b)|(?<=[a-z])Hands(?=[A-Z]|\b)|\bHands[A-Z]\w*/g, write: 'tools, tooling' },
  { find: /\bteams?\b|(?<=[a-z])Teams?(?=[A-Z]|\b)|\bTeams?[A-Z]\w*/g, write: 'delegation' },
  { find: /\b(?:createTalk|TalkDeps|Talk|server-talk)\b|\btalks? with\b/g, write: 'messaging, use' },
  { find: /\b(?:proving|common|outward)[- ]ground\b|\b(?:openGround|Ground[A-Z]?\w*)\b/gi, write: 'core, foundation' },
  { find: /\bhouse (?:rules?|law|word)\b|\b(?:of|own) the house\b|\bhouse-?rules?\b/gi, write: 'project' },
  {
    find: /\bstart-parts\b|\b\w+PartDeps\b|\bcreate\w+Part\b|\bparts of the (?:server|daemon|program|product)\b/g,
    write: 'wiring, composition, module',
  },
  { find: /\bleft[ -]turns?\b|[lL]eftTurns?\b|\bturns? that (?:was|were) left\b/g, write: 'interrupted turn' },
  {
    find: /\b(?:free|no|takes?|holds?|gets?|of its) places?\b(?! (?:it|where|to look)\b)|\bplaces (?:of|for|among)\b|\bplaces\b(?=[.,;)])/gi,
    write: 'slots',
  },
  { find: /\bleave to\b(?= [a-z]+)|\b(?:has|have|gets?|without|needs?) leave\b/gi, write: 'permit, permission' },
  {
    find: /\b(?:no|enough|more|less|little|make[s]?|made|leaves?) room\b|\broom (?:for|in|of)\b|\b(?:has|needs?)Room\w*|\broom(?:Of|For|In)\b/gi,
    write: 'capacity, space',
  },
  { find: /\bwordsOf\w*|\b\w+Words\b|\bin words\b|\bwords of (?:the|an|its|agents?|others)\b|\bwords from\b/g, write: 'term, keyword, text' },
  { find: /\bpieces? of work\b|\bpieces?\b(?= (?:of|that|is|are|at)\b)/gi, write: 'item' },
  { find: /\brights\b/gi, write: 'permission, authority' },
  // Documentation that begins with a fragment
  { find: /\/\*\* (?:Of|By|For|As|Where|At|With|From|To|On|In) /g, write: 'a verb or a noun phrase first' },
  // Identifiers
  { find: /\b(?:what-may-be-called|wasCutOff|wouldHang|orFail|tending|tend|letGo|mostOf|cameToNothing)\b/g, write: 'a name that says what it does' },
];

/** Lines that keep a listed phrase, by file and text, each with its reason. At most fifty. */
export const exceptions: readonly { readonly file: RegExp; readonly line: RegExp; readonly reason: string }[] = [
  { file: /^tools\/(?:word-list|words\.test)\.ts$/, line: /./, reason: 'the list and its test' },
  {
    file: /^packages\/.*\/(?:actions\/telegram\.ts|channels\/telegram\/|fake-telegram)/,
    line: /\brights: (?:z\.|given|\{)|shape\.rights|(?:enough|no) rights/,
    reason: 'a parameter of telegram.action, and descriptions of the Bot API',
  },
  { file: /^CONTRIBUTING\.md$/, line: /^\| .+ \| .+ \|$/, reason: 'the glossary, which shows what not to write' },
  { file: /\/(?:\w+-)?migrations\.ts$/, line: /./, reason: 'released SQL, which is checked by its digest' },
  {
    file: /\/memory\/(?:testing\/(?:long|labelled)-pairs|recall\/common-terms)\.ts$/,
    line: /./,
    reason: 'everyday texts that recall is measured with',
  },
  { file: /\/memory\/recall\/text-query\.ts$/, line: / such tell than /, reason: 'stop list of the search' },
  { file: /\/memory\/embeddings\/relevance\.ts$/, line: /groundnuts/, reason: 'text that similarity is calibrated with' },
  { file: /\/memory\/lifecycle\/memory-life\.rpc\.test\.ts$/, line: /door/, reason: 'text of a memory' },
  { file: /\/(?:background|turns)(?:\/.*)?\.ts$/, line: /['`](?:told|telling)['`]/, reason: 'stored states of tasks' },
  {
    file: /(?:cron\/tool\/(?:args|tool|tool\.rpc\.test)|channels\/deliveries\.rpc\.test|proving\/lib\/authority-acts)\.ts$/,
    line: /\btell\b/,
    reason: 'released parameter of the tool `cron`',
  },
  { file: /\/heartbeat\/beat\/[\w-]+(?:\.test)?\.ts$/, line: /'tell'/, reason: 'stored kind of a result' },
  { file: /^packages\/cli\/src\/commands\/(?:graph-runs|runs|delegation\.test)\.ts$/, line: /\btell\b/, reason: 'released option --tell' },
  { file: /^docs\/guide\/delegation\.md$/, line: /--tell/, reason: 'released option --tell' },
  { file: /\/observability\/(?:instruments|metrics\.test)\.ts$/, line: /door/, reason: 'released label of a metric' },
  { file: /\/(?:channels\/slack\/message|fake-slack-workspace)\.ts$/, line: /\bteam\b/, reason: 'field of messages of Slack' },
  { file: /\/sessions\/conversation\.test\.ts$/, line: /peerId: 'team'/, reason: 'digest of an earlier version' },
  { file: /\/(?:injection|v1-injection\.rpc)(?:\.test)?\.ts$|\/content-rules\.ts$/, line: /./, reason: 'attacks and the patterns that find them' },
  { file: /^proving\/lib\/skill-samples\.ts$/, line: /./, reason: 'attacks and honest texts that are told apart' },
];
