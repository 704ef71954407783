import type { Embeddings } from '../../../../llm/embeddings.ts';

/** Generates numbers from 0 to 1, the same for the same seed. */
export function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const vocabulary = 20_000;
const topics = 400;

/** Texts of 8 to 38 words with a natural distribution: few are common, most are rare; each is about one of some hundred topics, its first word. */
export function createCorpus(seed: number): { readonly text: () => string; readonly question: () => string } {
  const random = seededRandom(seed);
  const sums: number[] = [];
  let total = 0;
  for (let rank = 0; rank < vocabulary; rank += 1) sums.push((total += 1 / (rank + 10)));
  function word(): string {
    const wanted = random() * total;
    let low = 0;
    let high = vocabulary - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((sums[middle] ?? 0) < wanted) low = middle + 1;
      else high = middle;
    }
    return `w${low.toString(36)}q`;
  }
  const about = (words: number) => [`topic${Math.floor(random() * topics)}`, ...Array.from({ length: words }, word)].join(' ');
  return { text: () => about(8 + Math.floor(random() * 30)), question: () => about(5) };
}

/** A dense embedder for texts of the corpus: those of one topic surround one centre. */
export function denseVector(text: string, dimensions: number): Float32Array {
  const topic = text.slice(0, Math.max(0, text.indexOf(' ')));
  const centre = gaussians(topic, dimensions);
  const own = gaussians(text, dimensions);
  return centre.map((value, index) => value + 1.2 * (own[index] ?? 0));
}

function gaussians(text: string, count: number): Float32Array {
  let seed = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) seed = Math.imul(seed ^ text.charCodeAt(i), 0x01000193);
  const random = seededRandom(seed);
  // The sum of four is near enough to normal.
  return Float32Array.from({ length: count }, () => random() + random() + random() + random() - 2);
}

/** Replaces the embedding of a provider (`ModelWork.embed`). */
export function embedWith(vectorOf: (text: string) => Float32Array): (work: { readonly texts: readonly string[] }) => Promise<Embeddings> {
  return async ({ texts }) => ({ vectors: texts.map(vectorOf), model: 'corpus', tokens: 0 });
}
