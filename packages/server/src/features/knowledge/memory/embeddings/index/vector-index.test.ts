import { expect, test } from 'vitest';
import { hashingVector } from '../../../../../llm/hashing-embedder.ts';
import { createCorpus, denseVector, seededRandom } from '../../testing/corpus.ts';
import { type IndexedRow, type IndexFilter, VectorIndex } from './vector-index.ts';
import { dot, normalized, rotate, signsOf, signLength } from './vector-signs.ts';

const filter: IndexFilter = {
  agentId: 'default',
  principalId: null,
  types: undefined,
  trust: undefined,
  tags: [],
  includeDerivedSources: true,
  atMs: 1_000,
};
const rowOf = (seq: number, vector: Float32Array, more: Partial<IndexedRow> = {}): IndexedRow => ({
  seq,
  agentId: 'default',
  principalId: '*',
  memoryType: 'semantic',
  trustLevel: 'learned',
  tags: [],
  expiresAtMs: null,
  consolidated: false,
  signs: signsOf(rotate(vector)),
  ...more,
});

test.each([
  ['dense', (text: string) => denseVector(text, 384)],
  ['sparse', (text: string) => hashingVector(text, 384)],
])('of 5000 %s vectors the ten nearest are among the 400 that are compared exactly', (_name, vectorOf) => {
  const corpus = createCorpus(2);
  const vectors = Array.from({ length: 5_000 }, () => normalized(vectorOf(corpus.text())));
  const index = new VectorIndex(signLength(384));
  for (const [at, vector] of vectors.entries()) index.put(rowOf(at + 1, vector));
  let hits = 0;
  for (let n = 0; n < 30; n += 1) {
    const query = normalized(vectorOf(corpus.question()));
    const near = new Set(index.nearest(rotate(query), filter, 400));
    const exact = vectors.map((vector, at) => ({ seq: at + 1, similarity: dot(query, vector) })).sort((a, b) => b.similarity - a.similarity);
    hits += exact.slice(0, 10).filter(({ seq }) => near.has(seq)).length;
  }
  expect(hits / 300).toBeGreaterThan(0.97);
});

test('every filter excludes what it names, and changes of an entry count at once', () => {
  const random = seededRandom(3);
  const vector = () => Float32Array.from({ length: 16 }, () => random() - 0.5);
  const target = vector();
  const index = new VectorIndex(signLength(16));
  const found = (change: Partial<IndexFilter> = {}) => index.nearest(rotate(target), { ...filter, ...change }, 10);
  index.put(rowOf(1, target, { principalId: 'token:a', tags: ['red', 'round'], trustLevel: 'external', memoryType: 'episodic' }));
  index.put(rowOf(2, vector(), { agentId: 'other' }));
  index.put(rowOf(3, vector(), { expiresAtMs: 1_000 }));
  index.put(rowOf(4, vector(), { consolidated: true }));
  expect(found()).toEqual([1, 4]);
  expect(found({ agentId: 'other' })).toEqual([2]);
  expect(found({ agentId: 'absent' })).toEqual([]);
  expect(found({ atMs: 999 }).toSorted()).toEqual([1, 3, 4]);
  expect(found({ includeDerivedSources: false })).toEqual([1]);
  expect(found({ principalId: 'token:b' })).toEqual([4]);
  expect(found({ principalId: 'token:a' })).toEqual([1, 4]);
  expect(found({ tags: ['red'] })).toEqual([1]);
  expect(found({ trust: ['external'] })).toEqual([1]);
  expect(found({ types: ['procedural', 'working'] })).toEqual([]);
  index.put({ ...rowOf(1, target), signs: undefined });
  expect(found()).toEqual([4]);
  index.put(rowOf(1, target));
  index.remove(4);
  expect(found()).toEqual([1]);
});

test('an entry that becomes visible after others with higher positions is found like them', () => {
  const random = seededRandom(4);
  const vectors = Array.from({ length: 1_100 }, () => Float32Array.from({ length: 64 }, () => random() - 0.5));
  const index = new VectorIndex(signLength(64));
  const late = new Set([1, 2, 500, 1_024, 1_099]);
  const put = (seq: number) => index.put(rowOf(seq, vectors[seq - 1] ?? new Float32Array(64), { tags: [`t${seq}`] }));
  for (let seq = 1; seq <= vectors.length; seq += 1) if (!late.has(seq)) put(seq);
  for (const seq of late) put(seq);
  for (let seq = 1; seq <= vectors.length; seq += 1)
    expect(index.nearest(rotate(vectors[seq - 1] ?? new Float32Array(64)), { ...filter, tags: [`t${seq}`] }, 1)).toEqual([seq]);
  index.remove(500);
  expect(index.nearest(rotate(vectors[499] ?? new Float32Array(64)), filter, 1)).not.toEqual([500]);
  expect(index.lastSeq).toBe(1_100);
});
