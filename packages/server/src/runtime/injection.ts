import { foldText } from './hidden-text.ts';

export interface InjectionFinding {
  /** Names of the patterns that match, in a fixed order. */
  readonly patterns: readonly string[];
  readonly riskLevel: 'low' | 'medium' | 'high';
}

interface Pattern {
  readonly name: string;
  readonly risk: 1 | 2 | 3;
  readonly matches: RegExp;
}

/** Every quantifier is bounded, so that no text makes the search slow. All are run on folded text. */
const patterns: readonly Pattern[] = [
  {
    name: 'instruction_override',
    risk: 3,
    matches:
      /\b(?:ignore|disregard|forget|override|bypass|do not follow)\b[^.\n]{0,40}\b(?:previous|prior|above|earlier|preceding|all|your|system|initial|original)\b[^.\n]{0,30}\b(?:instructions?|rules?|prompts?|guidelines?|directives?|constraints?|context)\b/i,
  },
  {
    name: 'new_instructions',
    risk: 2,
    matches:
      /\b(?:new|updated|revised|real|actual|important)\s{1,4}(?:system\s{1,4})?(?:instructions?|directives?|orders?)\s{0,4}(?:for (?:you|the (?:ai|assistant|model|agent))|:)/i,
  },
  {
    name: 'role_change',
    risk: 2,
    matches:
      /\byou are (?:now|no longer)\b|\b(?:from now on|starting now)\b[^.\n]{0,20}\byou (?:are|will|must)\b|\bpretend (?:to be|you are|that you)\b|\bact as (?:if you|an? (?:unrestricted|unfiltered|jailbroken|admin|root))|\b(?:developer|debug|god|dan|jailbreak) mode\b/i,
  },
  {
    name: 'system_role',
    risk: 3,
    matches:
      /<\|?\/?(?:im_start|im_end|system|assistant|endoftext|eot_id|start_header_id)\|?>|\[\/?(?:INST|SYS(?:TEM)?)\]|<<\/?SYS>>|^[ \t>#*]{0,8}(?:system|developer|assistant)(?: (?:message|prompt|note|override))?[ \t]{0,4}[:\]]/im,
  },
  {
    name: 'prompt_extraction',
    risk: 2,
    matches:
      /\b(?:reveal|show|print|repeat|output|display|leak|tell me)\b[^.\n]{0,30}\b(?:system|hidden|initial|secret|original)\b[^.\n]{0,15}\b(?:prompt|instructions?|message|rules)\b/i,
  },
  {
    name: 'secret_request',
    risk: 3,
    matches:
      /\b(?:send|post|upload|email|e-?mail|forward|exfiltrate|transmit|leak|give|reveal|print|include|append|share)\b[^.\n]{0,60}\b(?:api[ _-]?keys?|passwords?|credentials?|secrets?|access[ _-]?tokens?|bearer|private[ _-]?keys?|ssh[ _-]?keys?|environment variables|\.env)\b/i,
  },
  {
    name: 'exfiltration_link',
    risk: 3,
    matches:
      /!\[[^\]\n]{0,100}\]\(https?:\/\/[^)\s]{1,300}(?:\{|\$|%7b|<)[^)\n]{0,200}\)|\b(?:append|encode|embed)\b[^.\n]{0,60}\b(?:to|in|into)\b[^.\n]{0,20}\b(?:url|link|query|image)\b/i,
  },
  {
    name: 'tool_command',
    risk: 2,
    matches:
      /\b(?:call|invoke|use|run|execute)\b[^.\n]{0,20}\b(?:tools?|functions?|shell|commands?|exec|curl|write_file)\b[^.\n]{0,60}\b(?:immediately|without (?:asking|telling|confirmation|approval)|silently|secretly|now)\b/i,
  },
  {
    name: 'concealment',
    risk: 2,
    matches:
      /\b(?:do not|don't|never)\b[^.\n]{0,15}\b(?:tell|inform|mention|alert|notify|show|reveal)\b[^.\n]{0,20}\b(?:the )?(?:user|human|operator|owner|anyone)\b/i,
  },
  {
    name: 'marker_forgery',
    risk: 3,
    matches: /<<[^\n<>]{0,40}untrusted|untrusted[-_ ]text [0-9a-f]{8}|\b(?:end|close) of (?:untrusted|external|user) (?:text|content|data|input)\b/i,
  },
  { name: 'encoded_payload', risk: 1, matches: /\b(?:decode|base64|rot13|hex)\b[^.\n]{0,40}\b(?:and )?(?:follow|execute|run|obey)\b/i },
];

/** One keyword of each pattern: nearly all text has none and costs one pass. */
const firstPass =
  /ignor|disregard|forget|overrid|bypass|instruction|directive|orders?\s?(?:for|:)|you are n|now on|starting now|pretend|act as|mode\b|im_(?:start|end)|system|assistant|developer|endoftext|eot_id|header_id|\[\/?inst|prompt|api.?key|passw|credential|secret|token|bearer|private.?key|ssh|variable|\.env|!\[|append|encode|embed|tool|function|shell|command|exec|curl|untrusted|\b(?:end|close) of|do not|don't|never|decode|base64|rot13/i;

/** A single one occurs in honest text; a run, or any tag character, is there to hide something. */
const hiddenRun = /[\u034f\u180e\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]{4}|[\u{e0020}-\u{e007f}]/u;
const plainAscii = /^[\t\n\r\u0020-\u007e]*$/;
/** Enough of a long text: text that wants to be obeyed is where it will be read. */
const scannedCharacters = 65_536;

/** Detects text that tries to instruct the model; undefined for other text. A hint for operators, never a gate: authority does not depend on it. */
export function detectInjection(text: string): InjectionFinding | undefined {
  const scanned = text.length <= scannedCharacters ? text : `${text.slice(0, scannedCharacters / 2)}\n${text.slice(-scannedCharacters / 2)}`;
  const ascii = plainAscii.test(scanned);
  const folded = ascii ? scanned : foldText(scanned);
  const hidden = !ascii && hiddenRun.test(scanned);
  if (!hidden && !firstPass.test(folded)) return undefined;
  const found = patterns.filter((pattern) => pattern.matches.test(folded));
  const names = found.map((pattern) => pattern.name);
  if (hidden) names.push('hidden_unicode');
  if (names.length === 0) return undefined;
  const risk = Math.max(hidden ? 2 : 1, ...found.map((pattern) => pattern.risk)) + (names.length > 2 ? 1 : 0);
  return { patterns: names, riskLevel: risk >= 3 ? 'high' : risk === 2 ? 'medium' : 'low' };
}
