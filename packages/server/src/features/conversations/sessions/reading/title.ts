import type { NewMessages } from '../api.ts';

const maxTitleLength = 80;
/** Characters of a message considered, more than a title can hold. */
const headLength = 400;

/** Returns the start of a user's message, at most 80 characters of whole code points on one line; null when it has no text. */
export function titleOf(message: Pick<NewMessages['messages'][number], 'role' | 'content'> | undefined): string | null {
  if (message?.role !== 'user') return null;
  const line = message.content.slice(0, headLength).trim().replaceAll(/\s+/g, ' ');
  return shorten(line, maxTitleLength) || null;
}

/** Returns a title on one line of at most 80 characters, without quotation marks around it; undefined when nothing is left. */
export function nameOf(text: string): string | undefined {
  const line = text
    .slice(0, headLength)
    .trim()
    .replaceAll(/[\s\p{C}]+/gu, ' ');
  const bare = line.replace(/^["'“”„«»`*#\s]+/u, '').replace(/["'“”«»`*\s]+$/u, '');
  return shorten(bare, maxTitleLength) || undefined;
}

/** Truncates at a word boundary near the limit, never inside a code point, and appends an ellipsis. */
function shorten(line: string, limit: number): string {
  const points = [...line];
  if (points.length <= limit) return line.isWellFormed() ? line : line.toWellFormed();
  const cut = points.slice(0, limit - 1).join('');
  const space = points[limit - 1] === ' ' ? -1 : cut.lastIndexOf(' ');
  return `${(space > cut.length / 2 ? cut.slice(0, space) : cut).toWellFormed()}…`;
}
