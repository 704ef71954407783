/** Answer of an agent with nothing to report. */
export const acknowledgement = 'HEARTBEAT_OK';

export interface Answer {
  readonly kind: 'ok' | 'tell';
  /** The answer without the token. */
  readonly text: string;
}

const decoration = /[\s*_`"'.!:,;\u2013\u2014-]/;
const isWordCharacter = (character: string | undefined) => character !== undefined && /[A-Za-z0-9_]/.test(character);

/**
 * Classifies an answer: an acknowledgement is empty, or starts or ends with the token plus at most `ackMaxChars`
 * other characters; anything else is reported.
 */
export function readAnswer(answer: string, ackMaxChars: number): Answer {
  const text = answer.trim();
  if (text === '') return { kind: 'ok', text };
  // Ignores any marks or punctuation around the token.
  if (bare(text) === acknowledgement) return { kind: 'ok', text: '' };
  const rest = withoutLast(withoutFirst(text));
  if (rest === text) return { kind: 'tell', text };
  return { kind: rest.length <= ackMaxChars ? 'ok' : 'tell', text: rest };
}

function withoutFirst(text: string): string {
  const begin = skip(text, 0);
  const end = begin + acknowledgement.length;
  if (!text.startsWith(acknowledgement, begin) || isWordCharacter(text[end])) return text;
  return text.slice(skip(text, end));
}

function withoutLast(text: string): string {
  const end = skipBack(text, text.length);
  const begin = end - acknowledgement.length;
  if (!text.endsWith(acknowledgement, end) || isWordCharacter(text[begin - 1])) return text;
  return text.slice(0, skipBack(text, begin));
}

function bare(text: string): string {
  let from = 0;
  let to = text.length;
  while (from < to && !isWordCharacter(text[from])) from += 1;
  while (to > from && !isWordCharacter(text[to - 1])) to -= 1;
  return text.slice(from, to);
}

/** Scans manually, because an unanchored pattern takes quadratic time. */
function skip(text: string, from: number): number {
  let at = from;
  while (at < text.length && decoration.test(text.charAt(at))) at += 1;
  return at;
}

function skipBack(text: string, from: number): number {
  let at = from;
  while (at > 0 && decoration.test(text.charAt(at - 1))) at -= 1;
  return at;
}
