import type { NewMessages } from '../api.ts';

const maxTitleLength = 80;
/** More of a message than a title can hold; the rest is not looked at. */
const headLength = 400;

/** First words of a user's message, at most 80 characters of whole code points on one line; null when it has none. */
export function titleOf(message: Pick<NewMessages['messages'][number], 'role' | 'content'> | undefined): string | null {
  if (message?.role !== 'user') return null;
  const line = message.content.slice(0, headLength).trim().replaceAll(/\s+/g, ' ');
  return shorten(line, maxTitleLength) || null;
}

/** Cut at a word where one ends near the limit, never inside a code point; what is cut ends with an ellipsis. */
function shorten(line: string, limit: number): string {
  const points = [...line];
  if (points.length <= limit) return line.isWellFormed() ? line : line.toWellFormed();
  const cut = points.slice(0, limit - 1).join('');
  const space = points[limit - 1] === ' ' ? -1 : cut.lastIndexOf(' ');
  return `${(space > cut.length / 2 ? cut.slice(0, space) : cut).toWellFormed()}…`;
}
