/** Cuts without splitting a surrogate pair. */
function headOf(text: string, length: number): string {
  const splits = length > 0 && length < text.length && isHighSurrogate(text.charCodeAt(length - 1));
  return text.slice(0, splits ? length - 1 : length);
}

function tailOf(text: string, length: number): string {
  const from = text.length - length;
  return text.slice(from > 0 && isHighSurrogate(text.charCodeAt(from - 1)) ? from + 1 : from);
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

/** The two ends of a text, and what says in between how many characters are missing. */
export function splitMiddle(text: string, kept: number): { readonly head: string; readonly note: string; readonly end: string } {
  const tail = Math.floor(kept / 4);
  const head = headOf(text, kept - tail);
  const end = tail === 0 ? '' : tailOf(text, tail);
  return { head, note: `\n[… ${text.length - head.length - end.length} characters left out …]\n`, end };
}

/** Keeps `kept` characters, three quarters of them from the beginning, and says in between how many are missing. */
export function cutMiddle(text: string, kept: number): string {
  if (text.length <= kept) return text;
  const { head, note, end } = splitMiddle(text, kept);
  return `${head}${note}${end}`;
}
