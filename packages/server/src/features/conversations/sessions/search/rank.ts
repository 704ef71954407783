import { createFinder, type Term } from './terms.ts';

/** BM25 constants: saturation of repeated terms, and penalty for long texts. */
const saturation = 1.2;
const lengthWeight = 0.75;

/**
 * Returns a score of 0 to 1 for each text: BM25 without the rarity of terms, which is the same for all texts that contain
 * all of them. SQLite's own ranking scans every occurrence of a common word in the whole index.
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
