import type { MemoryExplanation } from '../api.ts';

export interface Lanes {
  /** Positions of entries, best first. */
  readonly text: readonly number[];
  /** The same with the cosine of each; undefined when the query has no vector. */
  readonly vector: readonly { readonly seq: number; readonly similarity: number }[] | undefined;
}

export interface Fused {
  readonly seq: number;
  readonly explain: MemoryExplanation;
}

const textWeight = 1;
const vectorWeight = 1.5;
/** Flattens the first ranks, so that one lane alone does not decide. */
const rankOffset = 60;

/** Reciprocal rank fusion: entries of all lanes, best first. Ranks say nothing about relevance; see `relevance.ts`. */
export function fuse({ text, vector }: Lanes): Fused[] {
  const fused = new Map<number, { score: number; explain: MemoryExplanation }>();
  for (const [index, seq] of text.entries()) fused.set(seq, { score: textWeight / (rankOffset + index + 1), explain: { textRank: index + 1 } });
  for (const [index, { seq, similarity }] of (vector ?? []).entries()) {
    const before = fused.get(seq);
    fused.set(seq, {
      score: (before?.score ?? 0) + vectorWeight / (rankOffset + index + 1),
      explain: { ...before?.explain, vectorRank: index + 1, vectorSimilarity: similarity },
    });
  }
  // Of equal ones the newer is first.
  return [...fused].sort(([a, one], [b, other]) => other.score - one.score || b - a).map(([seq, { explain }]) => ({ seq, explain }));
}
