import type { MarkedToken } from 'marked';

/** Returns Markdown that shows a text as it is. */
export const escapeMarkdown = (text: string): string => text.replaceAll(/[!-/:-@[-`{-~]/g, '\\$&').replaceAll(/^[ \t]+/gm, '');

/** Returns the text of a paragraph that begins in its middle: what would begin a block of another kind is escaped. */
export function asParagraph(text: string): string {
  const source = text.trimStart();
  return source
    .replace(/^(?=#{1,6}(?:\s|$)|[-+*](?:\s|$)|>|~{3}|`{3,}[^`\n]*(?:\n|$)|\[[^\]]*\]:|(?:[-*_][ \t]*){3,}(?:\n|$)|<(?!https?:|mailto:))/, '\\')
    .replace(/^(\d{1,9})(?=[.)](?:\s|$))/, '$1\\');
}

/** Joins the rest of a block that was cut with the blocks after it. */
export function joinBlocks(first: string, after: string): string {
  if (after.trim() === '') return first;
  return first.trim() === '' ? after : `${first.trimEnd()}\n\n${after.replace(/^\n+/, '')}`;
}

/** Returns lines of code as a block that they do not end. */
export function fenced(lines: readonly string[], info: string): string {
  const text = lines.join('\n');
  const mark = info.includes('`') ? '~' : '`';
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}|~{3,}/g)].map(([run]) => run.length));
  const fence = mark.repeat(longest + 1);
  return `${fence}${info}\n${text}\n${fence}`;
}

/** Returns blocks as they were written; a block of code that only ends with what it is in is closed, because it may be put elsewhere. */
export const sourceOfBlocks = (blocks: readonly MarkedToken[]): string => blocks.map(sourceOfBlock).join('');

function sourceOfBlock(token: MarkedToken): string {
  if (token.type !== 'code') return token.raw;
  const [, fence] = /^ {0,3}(`{3,}|~{3,})/.exec(token.raw) ?? [];
  if (fence === undefined || new RegExp(`\\n {0,3}${fence}[\`~]*\\s*$`).test(token.raw)) return token.raw;
  return `${fenced(token.text.split('\n'), token.lang ?? '')}\n`;
}

export const quoted = (text: string): string =>
  text
    .trimEnd()
    .replaceAll(/^(?=.)/gm, '> ')
    .replaceAll(/^$/gm, '>');

/** Returns text of an item of a list. */
export const listed = (text: string, marker: string): string => `${marker}${text.trimEnd().replaceAll(/\n(?=.)/g, `\n${' '.repeat(marker.length)}`)}`;

/** Returns a span of code, also of text with backticks. */
export function codeSpan(text: string): string {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const mark = '`'.repeat(longest + 1);
  const space = /^[` ]|[` ]$/.test(text) ? ' ' : '';
  return `${mark}${space}${text}${space}${mark}`;
}
