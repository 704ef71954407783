import { createFinder, type Term } from './terms.ts';

export interface Snippet {
  /** Excerpt on one line, at most 200 characters. */
  readonly text: string;
  /** Positions of the terms, as offsets in UTF-16 code units. */
  readonly marks: readonly { readonly start: number; readonly end: number }[];
}

const maxCharacters = 200;
/** Characters shown before the first hit. */
const before = 60;

/** Returns an excerpt around the first occurrence of a term, or the start of the text. */
export function makeSnippet(content: string, terms: readonly Term[]): Snippet {
  const find = createFinder(terms);
  const hit = find(content).found[0]?.start ?? 0;
  const from = hit <= before ? 0 : wordStart(content, hit - before, hit);
  // Twice the length, because whitespace is collapsed.
  const excerpt = content.slice(from, from + 2 * maxCharacters).toWellFormed();
  const line = `${from > 0 ? '…' : ''}${excerpt.replaceAll(/\s+/g, ' ').trim()}`;
  const points = [...line];
  const cut = points.length > maxCharacters || from + 2 * maxCharacters < content.length;
  const text = cut ? `${points.slice(0, maxCharacters - 1).join('')}…` : line;
  return { text, marks: find(text).found.map(({ start, end }) => ({ start, end })) };
}

/** Returns the start of the first word after `from`, or `hit`. */
function wordStart(content: string, from: number, hit: number): number {
  const space = content.slice(from, hit).search(/\s/);
  return space === -1 ? hit : from + space + 1;
}
