/** What an agent says when there is nothing to tell. */
export const acknowledgement = 'HEARTBEAT_OK';

export interface Answer {
  readonly kind: 'ok' | 'tell';
  /** Without the token. */
  readonly text: string;
}

const decoration = /[\s*_`"'.!:,;\u2013\u2014-]/;
const isWordCharacter = (character: string | undefined) => character !== undefined && /[A-Za-z0-9_]/.test(character);

/**
 * What an answer means: an acknowledgement when it is empty, or begins or ends with the token and says at most
 * `ackMaxChars` characters beside it; anything else is to be told.
 */
export function readAnswer(answer: string, ackMaxChars: number): Answer {
  const text = answer.trim();
  if (text === '') return { kind: 'ok', text };
  // Whatever marks or signs stand around it.
  if (bare(text) === acknowledgement) return { kind: 'ok', text: '' };
  const beside = withoutLast(withoutFirst(text));
  if (beside === text) return { kind: 'tell', text };
  return { kind: beside.length <= ackMaxChars ? 'ok' : 'tell', text: beside };
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

/** By hand: a pattern that may begin anywhere takes time that grows with the square of the answer. */
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
