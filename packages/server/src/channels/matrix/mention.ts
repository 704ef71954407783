/** Removes the quotation of the answered message that older clients put before an answer. */
export function withoutFallback(text: string): { readonly text: string; readonly quotes: string | undefined } {
  if (!text.startsWith('> ')) return { text, quotes: undefined };
  const lines = text.split('\n');
  const end = lines.findIndex((line) => !line.startsWith('>'));
  const quotes = /^> (?:\* )?<(@[^>\s]+)>/.exec(lines[0] ?? '')?.[1];
  // Without an empty line after it, it is a quotation of the person.
  if (quotes === undefined || end === -1 || lines[end] !== '') return { text, quotes: undefined };
  return { text: lines.slice(end + 1).join('\n'), quotes };
}

const edge = String.raw`[^\p{L}\p{M}\p{N}_-]`;
const anyOf = (names: readonly string[]): string =>
  names
    .toSorted((one, other) => other.length - one.length)
    .map((name) => RegExp.escape(name))
    .join('|');

/** Whether a text contains one of our names as a word. */
export const names = (text: string, own: readonly string[]): boolean =>
  own.length > 0 && new RegExp(`(?:^|${edge})@?(?:${anyOf(own)})(?:$|${edge})`, 'iu').test(text);

/** Removes our name, or a link to us, at the beginning of a text. */
export function withoutMention(text: string, userId: string, own: readonly string[]): string {
  const ids = [userId, encodeURIComponent(userId)].map((id) => RegExp.escape(id)).join('|');
  const link = String.raw`\[[^\]\n]{0,128}\]\(https://matrix\.to/#/(?:${ids})\)`;
  const marks = [link, RegExp.escape(userId), ...(own.length === 0 ? [] : [`@?(?:${anyOf(own)})`])];
  const mark = new RegExp(String.raw`^(?:${marks.join('|')})(?:[:,]\s*|\s+|$)`, 'iu').exec(text);
  return mark === null ? text : text.slice(mark[0].length);
}
