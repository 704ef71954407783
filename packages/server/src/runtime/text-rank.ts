/** Returns the positions of the texts that match a query, best first. */
export type TextRank = (query: string, limit: number) => readonly number[];

/** Saturation of a repeated word, and how much long texts lose: the usual values of BM25. */
const k1 = 1.2;
const b = 0.75;

/** Ranks a few hundred short texts by BM25; their statistics are computed once. */
export function createTextRank(texts: readonly string[]): TextRank {
  const documents = texts.map((text) => {
    const terms = termsOf(text);
    const counts = new Map<string, number>();
    for (const term of terms) counts.set(term, (counts.get(term) ?? 0) + 1);
    return { length: terms.length, counts };
  });
  const mean = documents.reduce((sum, { length }) => sum + length, 0) / Math.max(1, documents.length);
  const having = new Map<string, number>();
  for (const { counts } of documents) for (const term of counts.keys()) having.set(term, (having.get(term) ?? 0) + 1);

  function scoreOf({ counts, length }: (typeof documents)[number], terms: readonly string[]): number {
    let score = 0;
    for (const term of terms) {
      const count = counts.get(term);
      if (count === undefined) continue;
      const rare = having.get(term) ?? 0;
      const weight = Math.log(1 + (documents.length - rare + 0.5) / (rare + 0.5));
      score += (weight * count * (k1 + 1)) / (count + k1 * (1 - b + (b * length) / mean));
    }
    return score;
  }

  return (query, limit) => {
    const terms = [...new Set(termsOf(query))];
    return documents
      .map((document, index) => ({ index, score: scoreOf(document, terms) }))
      .filter(({ score }) => score > 0)
      .toSorted((left, right) => right.score - left.score || left.index - right.index)
      .slice(0, limit)
      .map(({ index }) => index);
  };
}

/** `listFiles`, `list_files` and "list files" have the same terms; a plural equals its singular. */
function termsOf(text: string): string[] {
  const terms = text
    .replace(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu);
  return (terms ?? []).map((term) => (term.length > 3 && term.endsWith('s') ? term.slice(0, -1) : term));
}
