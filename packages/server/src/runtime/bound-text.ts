import { headOf, tailOf } from '../kernel/cut-text.ts';

/** Returns both ends of a text, and a note for the gap that says how many characters are missing. */
export function splitMiddle(text: string, kept: number): { readonly head: string; readonly note: string; readonly end: string } {
  const tail = Math.floor(kept / 4);
  const head = headOf(text, kept - tail);
  const end = tail === 0 ? '' : tailOf(text, tail);
  return { head, note: `\n[… ${text.length - head.length - end.length} characters left out …]\n`, end };
}

/** Keeps `kept` characters, three quarters of them from the start, and notes in the gap how many are missing. */
export function cutMiddle(text: string, kept: number): string {
  if (text.length <= kept) return text;
  const { head, note, end } = splitMiddle(text, kept);
  return `${head}${note}${end}`;
}
