import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { ChatOpenAI } from '@langchain/openai';
import { embedMany, generateText, streamText } from 'ai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fakeVector } from '../packages/testkit/src/fake-provider.ts';
import { type Product, startProduct } from './lib/product.ts';

let product: Product;
beforeAll(async () => {
  product = await startProduct({ config: { embedding: { provider: 'local', model: 'fake-embedding' } } });
});
afterAll(() => product[Symbol.asyncDispose]());

describe('@ai-sdk/openai-compatible', () => {
  const provider = () => createOpenAICompatible({ name: 'gatehouse', baseURL: `${product.url}/v1`, apiKey: product.token, includeUsage: true });

  test('generateText', async () => {
    product.provider.queue({ text: 'It works.', usage: { input: 12, output: 3 } });
    const { text, usage, finishReason } = await generateText({ model: provider()('local/test-model'), system: 'Be brief.', prompt: 'Does it work?' });
    expect(text).toBe('It works.');
    expect(finishReason).toBe('stop');
    expect(usage).toMatchObject({ inputTokens: 12, outputTokens: 3, totalTokens: 15 });
  });

  test('streamText', async () => {
    product.provider.queue({ text: ['It ', 'works ', 'in parts.'], usage: { input: 12, output: 5 } });
    const result = streamText({ model: provider()('local/test-model'), prompt: 'Does it stream?' });
    const parts: string[] = [];
    for await (const part of result.textStream) parts.push(part);
    expect(parts.join('')).toBe('It works in parts.');
    expect(parts.length).toBeGreaterThan(1);
    expect(await result.usage).toMatchObject({ inputTokens: 12, outputTokens: 5 });
  });

  test('embedMany', async () => {
    const { embeddings } = await embedMany({ model: provider().embeddingModel('fake-embedding'), values: ['a', 'bc'] });
    expect(embeddings).toEqual([[...fakeVector('a', 8)], [...fakeVector('bc', 8)]]);
  });
});

describe('@langchain/openai', () => {
  const model = () => new ChatOpenAI({ model: 'local/test-model', apiKey: product.token, configuration: { baseURL: `${product.url}/v1` } });

  test('invoke', async () => {
    product.provider.queue({ text: 'Hello, chain.', usage: { input: 9, output: 4 } });
    const message = await model().invoke([
      ['system', 'Be kind.'],
      ['human', 'Hello'],
    ]);
    expect(message.content).toBe('Hello, chain.');
    expect(message.usage_metadata).toMatchObject({ input_tokens: 9, output_tokens: 4, total_tokens: 13 });
  });

  test('stream', async () => {
    product.provider.queue({ text: ['Hello, ', 'link ', 'by link.'] });
    let text = '';
    for await (const chunk of await model().stream('Hello')) text += String(chunk.content);
    expect(text).toBe('Hello, link by link.');
  });
});
