import { fixed } from '../kernel/config/live.ts';
import { fakeVector, type FakeProvider, startFakeProvider } from '@gatehouse/testkit';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../kernel/clock.ts';
import { EmbeddingConfig, ProvidersConfig } from './config.ts';
import { createEmbedder, type Embedder } from './embeddings.ts';
import { hashingVector } from './hashing-embedder.ts';

const signal = new AbortController().signal;
let provider: FakeProvider;
beforeEach(async () => {
  provider = await startFakeProvider();
});
afterEach(() => provider.close());

function embedderOf(config: object, type = 'openai-compatible'): Embedder {
  const embedder = createEmbedder(EmbeddingConfig.parse({ provider: 'p', model: 'e', ...config }), {
    providers: fixed(ProvidersConfig.parse({ p: { type, baseUrl: provider.url } })),
    clock: systemClock,
  });
  if (embedder === undefined) throw new Error('expected an embedder');
  return embedder;
}

function cosine(a: Float32Array, b: Float32Array) {
  return a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0);
}

describe('embeddings of a provider', () => {
  test.for(['openai-compatible', 'ollama'])('keep the order of the texts over batches (%s)', async (type) => {
    await using embedder = embedderOf({ batchSize: 3 }, type);
    const texts = Array.from({ length: 20 }, (_, i) => `text number ${i}`);
    const { vectors, model } = await embedder.embed(texts, signal);
    expect(vectors).toEqual(texts.map((text) => fakeVector(text, 8)));
    expect(model).toBe('e');
    expect(provider.served()).toBe(7);
    expect(provider.requests[0]?.body).toMatchObject({ model: 'e', encoding_format: type === 'ollama' ? 'float' : 'base64' });
  });

  test('use the next key when one is refused, and stay with it', async () => {
    const embedder = createEmbedder(EmbeddingConfig.parse({ provider: 'p', model: 'e', batchSize: 2 }), {
      providers: fixed(ProvidersConfig.parse({ p: { type: 'openai-compatible', baseUrl: provider.url, apiKeys: ['a', 'b'] } })),
      clock: systemClock,
    });
    await using opened = embedder ?? embedderOf({});
    const used = () => provider.requests.map(({ headers }) => headers.authorization);
    provider.queue({ status: 429 });
    expect((await opened.embed(['x'], signal)).vectors).toHaveLength(1);
    await opened.embed(['y'], signal);
    expect(used()).toEqual(['Bearer a', 'Bearer b', 'Bearer b']);
    provider.queue({ status: 401 }, { status: 401 });
    await expect(opened.embed(['z'], signal)).rejects.toMatchObject({ kind: 'auth' });
    expect(used().slice(3)).toEqual(['Bearer b', 'Bearer a']);
  });

  test('are ordered by their index', async () => {
    await using embedder = embedderOf({});
    provider.queue({
      body: JSON.stringify({
        data: [
          { index: 1, embedding: [0, 1] },
          { index: 0, embedding: [1, 0] },
        ],
      }),
    });
    expect((await embedder.embed(['a', 'b'], signal)).vectors.map((vector) => [...vector])).toEqual([
      [1, 0],
      [0, 1],
    ]);
  });

  test.for([
    ['one too few', { data: [{ index: 0, embedding: [1] }] }],
    [
      'one twice',
      {
        data: [
          { index: 0, embedding: [1] },
          { index: 0, embedding: [1] },
        ],
      },
    ],
    [
      'one out of range',
      {
        data: [
          { index: 0, embedding: [1] },
          { index: 9, embedding: [1] },
        ],
      },
    ],
    [
      'two lengths',
      {
        data: [
          { index: 0, embedding: [1] },
          { index: 1, embedding: [1, 2] },
        ],
      },
    ],
    [
      'an empty one',
      {
        data: [
          { index: 0, embedding: [] },
          { index: 1, embedding: [] },
        ],
      },
    ],
    [
      'odd bytes',
      {
        data: [
          { index: 0, embedding: 'AAA=' },
          { index: 1, embedding: 'AAA=' },
        ],
      },
    ],
    [
      'not a number',
      {
        data: [
          { index: 0, embedding: 'AADAfw==' },
          { index: 1, embedding: 'AADAfw==' },
        ],
      },
    ],
    ['no list', { nothing: true }],
  ] as const)('are refused with %s', async ([, body]) => {
    await using embedder = embedderOf({});
    provider.queue({ body: JSON.stringify(body) });
    await expect(embedder.embed(['a', 'b'], signal)).rejects.toMatchObject({ kind: 'bad_response' });
  });

  test('fail like models', async () => {
    await using embedder = embedderOf({});
    provider.queue({ status: 429, headers: { 'retry-after': '3' } });
    await expect(embedder.embed(['a'], signal)).rejects.toMatchObject({ kind: 'rate_limit', retryAfterMs: 3000 });
    await expect(embedder.embed(['a'], AbortSignal.abort())).rejects.toMatchObject({ kind: 'aborted' });
  });
});

describe('the configuration', () => {
  const make = (config: object, providers: object = {}) =>
    createEmbedder(EmbeddingConfig.parse(config), { providers: fixed(ProvidersConfig.parse(providers)), clock: systemClock });

  test('may be absent', () => {
    expect(createEmbedder(undefined, { providers: fixed({}), clock: systemClock })).toBeUndefined();
  });

  test('an impossible configuration is refused, naming the key', () => {
    expect(() => make({ provider: 'nope' })).toThrow('embedding.provider');
    expect(() => make({ provider: 'a' }, { a: { type: 'anthropic' } })).toThrow('offers no embeddings');
    expect(() => make({ provider: 'a', dimensions: 8 }, { a: { type: 'openai' } })).toThrow('embedding.dimensions');
  });
});

describe('hashing', () => {
  test('is deterministic, normalised and of the requested length', async () => {
    const embedder = createEmbedder(EmbeddingConfig.parse({ provider: 'hashing' }), { providers: fixed({}), clock: systemClock });
    const { vectors, model } = (await embedder?.embed(['The gateway answers', 'The gateway answers'], signal)) ?? { vectors: [], model: '' };
    expect(model).toBe('hashing-384');
    expect(vectors[0]).toHaveLength(384);
    expect(vectors[0]).toEqual(vectors[1]);
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 8, max: 600 }), (text, dimensions) => {
        expect(Math.hypot(...hashingVector(text, dimensions))).toBeCloseTo(1, 5);
      }),
    );
  });

  test('places texts that share words closer than others', () => {
    const [a, b, c] = ['how do I rotate an access token', 'rotating the access token of a client', 'recipe for apple pie with cinnamon'].map((text) =>
      hashingVector(text, 384),
    );
    if (a === undefined || b === undefined || c === undefined) throw new Error('no vectors');
    expect(cosine(a, b)).toBeGreaterThan(cosine(a, c) + 0.2);
  });
});
