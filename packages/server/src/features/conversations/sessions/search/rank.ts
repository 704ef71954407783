import { createFinder, type Term } from './terms.ts';

/** The constants of BM25: how soon more of the same word counts no more, and how much long texts are held back. */
const saturation = 1.2;
const lengthWeight = 0.75;

/**
 * How well each text answers the terms, 0 to 1: BM25 without the rarity of a term, which all texts that contain all terms
 * share. SQLite's own walks through every occurrence of a common word in the whole index.
 */
export function rankTexts(texts: readonly string[], terms: readonly Term[]): number[] {
  const find = createFinder(terms);
  const counted = texts.map((text) => {
    const { found, length } = find(text);
    const counts = terms.map(() => 0);
    for (const { term } of found) counts[term] = (counts[term] ?? 0) + 1;
    return { counts, length };
  });
  const meanLength = Math.max(1, counted.reduce((sum, { length }) => sum + length, 0) / texts.length);
  return counted.map(({ counts, length }) => {
    const held = saturation * (1 - lengthWeight + (lengthWeight * length) / meanLength);
    return counts.reduce((sum, count) => sum + count / (count + held), 0) / terms.length;
  });
}
