import { countTokens } from '../../../../../llm/count-tokens.ts';

/** No token is shorter than this many characters on average in any text, so longer text need not be counted to be too long. */
const longestToken = 16;
const ellipsis = '…';

/** One line: control characters and every kind of space become a single space, so that no text can begin a line of its own. */
export function oneLine(text: string): string {
  return text.replace(/[\p{C}\p{Z}]+/gu, ' ').trim();
}

/** The beginning of `text` that takes at most `tokens` tokens, marked when something was cut off; empty when nothing fits. */
export function cutToTokens(text: string, tokens: number): string {
  if (tokens <= 0) return '';
  let kept = text.slice(0, tokens * longestToken);
  if (kept.length === text.length && countTokens(text) <= tokens) return text;
  for (let round = 0; round < 40 && kept !== ''; round += 1) {
    const cut = `${kept.toWellFormed().replace(/\uFFFD$/, '')}${ellipsis}`;
    const counted = countTokens(cut);
    if (counted <= tokens) return cut;
    kept = kept.slice(0, Math.min(kept.length - 1, Math.floor((kept.length * tokens) / counted)));
  }
  return '';
}
