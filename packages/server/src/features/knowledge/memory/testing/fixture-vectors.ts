import { referenceTexts } from '../embeddings/relevance.ts';
import { labelledPairs, paraphrasedPairs } from './labelled-pairs.ts';
import { latePairs, longAndShortPairs } from './long-pairs.ts';

/** How an embedder spreads its cosines: the share common to all texts, and the further share common to texts of one topic. */
export interface EmbedderFamily {
  readonly common: number;
  readonly topic: number;
}

const dimensions = 384;

/** Vectors of a model that knows which texts are related, without its weights: topics are given, noise is seeded by the text. */
export function fixtureVector(text: string, { common, topic }: EmbedderFamily): Float32Array {
  const [all, own, noise] = [direction('all'), direction(`topic ${topicOf(text)}`), direction(`text ${text}`)];
  const rest = 1 - common - topic;
  const vector = all.map((value, i) => Math.sqrt(common) * value + Math.sqrt(topic) * (own[i] ?? 0) + Math.sqrt(rest) * (noise[i] ?? 0));
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}

const topics = new Map<string, string>();
for (const [i, text] of referenceTexts.entries()) topics.set(text, `reference ${i >> 1}`);
for (const { question, memory, related } of [...labelledPairs, ...paraphrasedPairs, ...longAndShortPairs, ...latePairs]) {
  if (!related) continue;
  topics.set(memory, topics.get(memory) ?? memory);
  topics.set(question, topics.get(memory) ?? memory);
}

const topicOf = (text: string) => topics.get(text) ?? text;

function direction(name: string): Float32Array {
  let state = 0x811c9dc5;
  for (const character of name) state = Math.imul(state ^ (character.codePointAt(0) ?? 0), 0x01000193);
  const vector = new Float32Array(dimensions);
  for (let i = 0; i < dimensions; i += 1) {
    let sum = 0;
    for (let k = 0; k < 4; k += 1) {
      state = (Math.imul(state, 1664525) + 1013904223) | 0;
      sum += (state >>> 8) / 2 ** 24 - 0.5;
    }
    vector[i] = sum;
  }
  const length = Math.hypot(...vector);
  return vector.map((value) => value / length);
}
