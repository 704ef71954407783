import type { WordWeight } from '../recall/common-terms.ts';

/** Maps the cosine of two texts to relevance: 0 at `zero` and below, 1 at `one` and above, linear in between. */
export interface Calibration {
  readonly zero: number;
  readonly one: number;
}

/** Default for uncalibrated embedders. */
export const defaultCalibration: Calibration = { zero: 0.3, one: 0.6 };

/** Calibration of `hashing`: cosines of sentences that share only articles and endings reach 0.5. */
export const hashingCalibration: Calibration = { zero: 0.7, one: 0.95 };

/** Pairs of paraphrases, each about another topic. Embedding them shows how an embedder spreads its cosines. */
const paraphrases = [
  ['The cat is asleep on the sofa.', 'A kitten naps upon the couch.'],
  ['Our flight to Oslo departs at dawn.', 'The plane bound for Norway takes off early in the morning.'],
  ['The quarterly tax return is due in April.', 'Income declarations must reach the revenue office by spring.'],
  ['She is allergic to peanuts.', 'Eating groundnuts makes her seriously ill.'],
  ['The database server ran out of disk space.', 'No storage was left on the machine that holds the SQL tables.'],
  ['He plays the violin in an orchestra.', 'As a musician he performs on a string instrument with a symphony ensemble.'],
  ['Tomatoes need plenty of sun and water.', 'To grow well, these red garden fruits require light and regular irrigation.'],
  ['My car would not start this morning.', 'The vehicle refused to turn on today.'],
] as const;

/** Texts embedded once to calibrate an embedder. */
export const referenceTexts: readonly string[] = paraphrases.flat();

/** Relevance of cosines that most unrelated and most related reference texts reach. */
const unrelatedLevel = 0.15;
const relatedLevel = 0.6;

/**
 * Calibrates an embedder by its unit vectors of `referenceTexts`. Some embedders put all texts near each other, others
 * far apart: only the distance between related and unrelated texts of the same embedder is meaningful. One that cannot
 * separate the two gets `defaultCalibration`.
 */
export function calibrate(vectors: readonly Float32Array[]): Calibration {
  const related: number[] = [];
  const unrelated: number[] = [];
  for (const [i, a] of vectors.entries())
    for (const [j, b] of vectors.entries()) if (j > i) (i >> 1 === j >> 1 ? related : unrelated).push(cosine(a, b));
  const low = quantile(unrelated, 0.95);
  const high = quantile(related, 0.1);
  if (!(high - low > 0.02)) return defaultCalibration;
  const slope = (relatedLevel - unrelatedLevel) / (high - low);
  const zero = low - unrelatedLevel / slope;
  return { zero, one: zero + 1 / slope };
}

function cosine(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (const [i, value] of a.entries()) sum += value * (b[i] ?? 0);
  return sum;
}

function quantile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/** Overlap of a query and an entry. */
export interface Overlap {
  /** Weight of the query terms that the entry contains. */
  readonly shared: WordWeight;
  readonly asked: WordWeight;
  readonly held: WordWeight;
  /** Whether the query is a single term. */
  readonly isOneWord: boolean;
}

/** Longer texts need more common terms. */
const longText = 8;
/** Relevance of a query of a single term that the entry contains. */
const wholeWord = 0.8;
/** Two unrelated texts of n and m terms share n * m / this many, on average. */
const chanceSpan = 2_000;
/** How improbable by chance (as a logarithm) the shared terms must be to count at all, and to count fully. */
const improbable = 5;
const convincing = 7;

/** Relevance by shared terms, 0 to 1. One common term is weak evidence, two are enough in short texts. */
export function textRelevance({ shared, asked, held, isOneWord }: Overlap): number {
  if (isOneWord) return wholeWord * shared.says ** 2;
  const shorter = Math.max(shared.says, Math.min(asked.says, held.says));
  const share = shorter === 0 ? 0 : shared.says / shorter;
  if (shared.says <= 1) return (shared.says * share) / 4;
  const mass = shared.says * Math.min(1, longText / shorter);
  // A text whose terms all occur in the other is about the same, however short it is.
  const byShare = share === 1 && shorter <= longText ? 1 : Math.min(1, Math.max(0, mass - 1) / 2 + share / 2);
  return asked.says <= longText ? byShare : Math.min(byShare, notByChance(shared.rare, asked.rare, held.rare));
}

/** Confidence, 0 to 1, that a long text and another one do not share this much by chance. */
function notByChance(shared: number, asked: number, held: number): number {
  if (shared <= 1) return 0;
  const surprise = shared * Math.log((shared * chanceSpan) / (asked * held));
  return Math.min(1, Math.max(0, (surprise - improbable) / (convincing - improbable)));
}

/** Relevance by cosine, 0 to 1. */
export function vectorRelevance(similarity: number, { zero, one }: Calibration): number {
  return Math.min(1, Math.max(0, (similarity - zero) / (one - zero)));
}

/** The stronger evidence counts; the weaker one adds a little. */
export function relevance(text: number, vector: number): number {
  const [weaker, stronger] = text < vector ? [text, vector] : [vector, text];
  return stronger + (1 - stronger) * weaker * 0.25;
}
