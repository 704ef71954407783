import OpenAI, { AuthenticationError, BadRequestError, NotFoundError, PermissionDeniedError, RateLimitError } from 'openai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fakeVector } from '../packages/testkit/src/fake-provider.ts';
import { type Product, scopedTokens, startProduct, tokenOf } from './lib/product.ts';

const hello = { model: 'local/test-model', messages: [{ role: 'user' as const, content: 'hello' }] };

describe('the unmodified openai package', () => {
  let product: Product;
  let client: OpenAI;

  beforeAll(async () => {
    product = await startProduct({
      config: { gateway: { tokens: scopedTokens }, embedding: { provider: 'local', model: 'fake-embedding', batchSize: 2 } },
    });
    client = new OpenAI({ apiKey: product.token, baseURL: `${product.url}/v1` });
  });
  afterAll(() => product[Symbol.asyncDispose]());

  test('chat', async () => {
    product.provider.queue({ text: 'Good morning.', usage: { input: 21, output: 4 } });
    const completion = await client.chat.completions.create(hello);
    expect(completion.choices[0]?.message.content).toBe('Good morning.');
    expect(completion.choices[0]?.finish_reason).toBe('stop');
    expect(completion.usage).toEqual({ prompt_tokens: 21, completion_tokens: 4, total_tokens: 25 });
    expect(completion.model).toBe('local/test-model');
  });

  test('chat by agent id and by bare model id', async () => {
    for (const model of ['default', 'agent/default', 'test-model']) {
      const completion = await client.chat.completions.create({ ...hello, model });
      expect(completion.model).toBe(model);
      expect(completion.choices[0]?.message.content).not.toBe('');
    }
  });

  test('streamed chat, with usage', async () => {
    product.provider.queue({ text: ['Good ', 'morn', 'ing "you"\n— ü 🎈'], usage: { input: 21, output: 9 } });
    const stream = await client.chat.completions.create({ ...hello, stream: true, stream_options: { include_usage: true } });
    let text = '';
    let usage: OpenAI.CompletionUsage | undefined;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      usage = chunk.usage ?? usage;
    }
    expect(text).toBe('Good morning "you"\n— ü 🎈');
    expect(usage?.total_tokens).toBe(30);
  });

  test('the stream helper', async () => {
    product.provider.queue({ text: ['one ', 'two'] });
    const helper = client.chat.completions.stream(hello);
    const deltas: string[] = [];
    helper.on('content', (delta) => deltas.push(delta));
    const completion = await helper.finalChatCompletion();
    expect(completion.choices[0]?.message.content).toBe('one two');
    expect(deltas.join('')).toBe('one two');
  });

  test('models.list and models.retrieve of an id with a slash', async () => {
    const ids: string[] = [];
    for await (const model of client.models.list()) ids.push(model.id);
    expect(ids).toContain('local/test-model');
    expect(ids).toContain('agent/default');
    expect(await client.models.retrieve('local/test-model')).toMatchObject({
      id: 'local/test-model',
      object: 'model',
      created: 0,
      owned_by: 'local',
    });
    await expect(client.models.retrieve('local/none')).rejects.toBeInstanceOf(NotFoundError);
  });

  test('embeddings as floats and as base64, in batches, in order', async () => {
    const input = ['first', 'second text', 'a third one'];
    const expected = input.map((text) => [...fakeVector(text, 8)]);
    const floats = await client.embeddings.create({ model: 'fake-embedding', input, encoding_format: 'float' });
    expect(floats.data.map((item) => item.embedding.map(Math.fround))).toEqual(expected);
    expect(floats.data.map((item) => item.index)).toEqual([0, 1, 2]);
    // The package requests base64 by default, and decodes it.
    const decoded = await client.embeddings.create({ model: 'fake-embedding', input });
    expect(decoded.data.map((item) => [...item.embedding])).toEqual(expected);
    const raw = await client.embeddings.create({ model: 'fake-embedding', input: 'first', encoding_format: 'base64' });
    expect(Buffer.from(raw.data[0]?.embedding as unknown as string, 'base64')).toEqual(Buffer.from(fakeVector('first', 8).buffer));
    // An estimate: a quarter of the characters of each text, rounded up.
    expect(floats.usage).toEqual({ prompt_tokens: 8, total_tokens: 8 });
  });

  test('error classes', async () => {
    const as = (apiKey: string) => new OpenAI({ apiKey, baseURL: `${product.url}/v1`, maxRetries: 0 });
    const strict = await client.chat.completions.create({ ...hello, top_p: 1, n: 2 }).catch((error: unknown) => error);
    expect(strict).toBeInstanceOf(BadRequestError);
    expect(strict).toMatchObject({ status: 400, type: 'invalid_request_error', param: 'top_p', code: null });
    expect(String(strict)).toContain('n');
    await expect(as(tokenOf('nobody')).chat.completions.create(hello)).rejects.toBeInstanceOf(AuthenticationError);
    await expect(as(tokenOf('mcp-client')).chat.completions.create(hello)).rejects.toBeInstanceOf(PermissionDeniedError);
    await expect(as(tokenOf('admin')).models.list()).rejects.toMatchObject({ status: 403, type: 'permission_error' });
    const unknown = await client.chat.completions.create({ ...hello, model: 'local/none' }).catch((error: unknown) => error);
    expect(unknown).toBeInstanceOf(NotFoundError);
    expect(unknown).toMatchObject({ type: 'not_found_error', error: { message: 'Model not found: local/none' } });
  });

  test('a failure in the middle of a stream is an error, not a short answer', async () => {
    product.provider.queue({ text: ['half ', 'of it'], breakAfter: { deltas: 1, by: 'error' } });
    const stream = await client.chat.completions.create({ ...hello, stream: true });
    const read = async () => {
      for await (const chunk of stream) expect(chunk.object).toBe('chat.completion.chunk');
    };
    await expect(read()).rejects.toBeInstanceOf(OpenAI.APIError);
  });
});

describe('the rate limit', () => {
  test('is answered with 429 and a time that the package waits', async () => {
    await using product = await startProduct({ config: { gateway: { rateLimit: { windowMs: 1500, maxRequests: 2 } } } });
    const impatient = new OpenAI({ apiKey: product.token, baseURL: `${product.url}/v1`, maxRetries: 0 });
    await impatient.models.list();
    await impatient.models.list();
    const refused = await impatient.models.list().catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(RateLimitError);
    expect(refused).toMatchObject({ type: 'rate_limit_error', code: null });
    expect(Number((refused as RateLimitError).headers.get('retry-after'))).toBeGreaterThan(0);
    const patient = new OpenAI({ apiKey: product.token, baseURL: `${product.url}/v1`, maxRetries: 2 });
    expect((await patient.chat.completions.create(hello)).object).toBe('chat.completion');
  });
});
