import { countTokens } from '../../../../../llm/count-tokens.ts';

/** Average characters per token never fall below this, so longer text need not be counted to be too long. */
const longestToken = 16;
const ellipsis = '…';

/** Collapses control characters and all white space to single spaces, so that no text can start a new line. */
export function oneLine(text: string): string {
  return text.replace(/[\p{C}\p{Z}]+/gu, ' ').trim();
}

/** Returns the beginning of `text` that fits in `tokens` tokens, marked when something was cut off; empty when nothing fits. */
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
