/** Positions of the texts that fit a query, best first. */
export type TextRank = (query: string, limit: number) => readonly number[];

/** Saturation of a repeated word, and how much long texts lose: the usual values of BM25. */
const k1 = 1.2;
const b = 0.75;

/** Ranks a few hundred short texts by BM25; what is known of them is worked out once. */
export function createTextRank(texts: readonly string[]): TextRank {
  const documents = texts.map((text) => {
    const words = wordsOf(text);
    const counts = new Map<string, number>();
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
    return { length: words.length, counts };
  });
  const mean = documents.reduce((sum, { length }) => sum + length, 0) / Math.max(1, documents.length);
  const having = new Map<string, number>();
  for (const { counts } of documents) for (const word of counts.keys()) having.set(word, (having.get(word) ?? 0) + 1);

  function scoreOf({ counts, length }: (typeof documents)[number], words: readonly string[]): number {
    let score = 0;
    for (const word of words) {
      const count = counts.get(word);
      if (count === undefined) continue;
      const rare = having.get(word) ?? 0;
      const weight = Math.log(1 + (documents.length - rare + 0.5) / (rare + 0.5));
      score += (weight * count * (k1 + 1)) / (count + k1 * (1 - b + (b * length) / mean));
    }
    return score;
  }

  return (query, limit) => {
    const words = [...new Set(wordsOf(query))];
    return documents
      .map((document, index) => ({ index, score: scoreOf(document, words) }))
      .filter(({ score }) => score > 0)
      .toSorted((left, right) => right.score - left.score || left.index - right.index)
      .slice(0, limit)
      .map(({ index }) => index);
  };
}

/** `listFiles`, `list_files` and "list files" are the same words; a plural is the word. */
function wordsOf(text: string): string[] {
  const words = text
    .replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu);
  return (words ?? []).map((word) => (word.length > 3 && word.endsWith('s') ? word.slice(0, -1) : word));
}
