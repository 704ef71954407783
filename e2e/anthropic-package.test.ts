import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Product, scopedTokens, startProduct, tokenOf } from './lib/product.ts';

const hello = { model: 'claude/claude-test', max_tokens: 4_000, messages: [{ role: 'user' as const, content: 'hello' }] };
const tool = {
  name: 'weather',
  description: 'Returns the weather',
  input_schema: { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'] },
};
const weather = { toolCalls: [{ id: 'toolu_1', name: 'weather', arguments: '{"city":"Oslo"}' }], usage: { input: 30, output: 8 } };
const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=';

describe('the unmodified anthropic package', () => {
  let product: Product;
  let client: Anthropic;

  beforeAll(async () => {
    product = await startProduct({
      config: {
        gateway: { tokens: scopedTokens, compat: { models: { 'claude-haiku-*': 'claude/claude-test', 'claude-*': 'agent/default' } } },
        providers: (url) => ({
          claude: {
            type: 'anthropic',
            baseUrl: url,
            apiKey: 'sk-ant-of-the-fake',
            models: [
              { id: 'claude-test', contextWindow: 200_000, maxTokens: 8_192, input: ['text', 'image', 'pdf'], cost: { input: 3, output: 15 } },
            ],
          },
        }),
      },
    });
    client = new Anthropic({ apiKey: tokenOf('api'), baseURL: product.url, maxRetries: 0 });
  });
  afterAll(() => product[Symbol.asyncDispose]());

  const sent = () => product.provider.requests.at(-1)?.body;

  test('text, with cache usage', async () => {
    product.provider.queue({ text: 'Good morning.', usage: { input: 100, output: 4, cacheRead: 60, cacheWrite: 30 } });
    const message = await client.messages.create(hello);
    expect(message).toMatchObject({
      role: 'assistant',
      content: [{ type: 'text', text: 'Good morning.' }],
      stop_reason: 'end_turn',
      model: 'claude/claude-test',
      usage: { input_tokens: 10, cache_read_input_tokens: 60, cache_creation_input_tokens: 30, output_tokens: 4 },
    });
  });

  test('a bearer token, and models of every provider under every name', async () => {
    const bearer = new Anthropic({ authToken: tokenOf('rpc'), apiKey: null, baseURL: product.url, maxRetries: 0 });
    for (const model of ['local/test-model', 'agent/default', 'default', 'claude-sonnet-4-5', 'claude-haiku-4-5-20251001'])
      expect((await bearer.messages.create({ ...hello, model })).content[0]).toMatchObject({ type: 'text' });
    expect(sent()).toMatchObject({ model: 'claude-test' });
  });

  test('the stream helper, with reasoning, a stop sequence and a valid length', async () => {
    product.provider.queue({
      thinking: { text: 'They greet me.', signature: 'sig-1' },
      text: ['Good ', 'morn', 'ing "you"\n— ü 🎈'],
      stopSequence: 'END',
      usage: { input: 21, output: 9 },
    });
    const stream = client.messages.stream({
      ...hello,
      max_tokens: 64_000,
      thinking: { type: 'enabled', budget_tokens: 2_000 },
      stop_sequences: ['END'],
      system: [{ type: 'text', text: 'Be kind.', cache_control: { type: 'ephemeral' } }],
    });
    const thoughts: string[] = [];
    const texts: string[] = [];
    stream.on('thinking', (delta) => void thoughts.push(delta));
    stream.on('text', (delta) => void texts.push(delta));
    const message = await stream.finalMessage();
    expect([thoughts.join(''), texts.join('')]).toEqual(['They greet me.', 'Good morning "you"\n— ü 🎈']);
    expect(message.content).toMatchObject([
      { type: 'thinking', thinking: 'They greet me.', signature: 'sig-1' },
      { type: 'text', text: texts.join('') },
    ]);
    expect([message.stop_reason, message.stop_sequence, message.usage.input_tokens, message.usage.output_tokens]).toEqual([
      'stop_sequence',
      'END',
      21,
      9,
    ]);
    expect(sent()).toMatchObject({ max_tokens: 8_192, thinking: { type: 'enabled', budget_tokens: 2_000 }, stop_sequences: ['END'] });
    expect(sent()).toMatchObject({ system: expect.arrayContaining([expect.objectContaining({ cache_control: { type: 'ephemeral' } })]) });
  });

  test.each([false, true])('a round trip of a tool, with its reasoning and an image (streamed: %s)', async (streamed) => {
    const ask = (messages: Anthropic.MessageParam[]) => {
      const params = { ...hello, messages, tools: [tool], thinking: { type: 'enabled' as const, budget_tokens: 1_024 } };
      return streamed ? client.messages.stream(params).finalMessage() : client.messages.create(params);
    };
    product.provider.queue({ ...weather, thinking: { text: 'I must look.', signature: 'sig-2' } }, { text: 'Rain.' });
    const first = await ask(hello.messages);
    expect(first.stop_reason).toBe('tool_use');
    expect(first.content).toMatchObject([{ type: 'thinking' }, { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Oslo' } }]);
    const image = { type: 'image' as const, source: { type: 'base64' as const, media_type: 'image/png' as const, data: pixel } };
    const second = await ask([
      ...hello.messages,
      { role: 'assistant', content: first.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: '5 degrees' }, image] }] },
    ]);
    expect(second.content).toMatchObject([{ type: 'text', text: 'Rain.' }]);
    expect(sent()).toMatchObject({
      messages: [
        {},
        {
          content: [
            { type: 'thinking', thinking: 'I must look.', signature: 'sig-2' },
            { type: 'tool_use', input: { city: 'Oslo' } },
          ],
        },
        { content: [{ type: 'tool_result', content: expect.stringContaining('5 degrees') }, { type: 'text' }, image] },
      ],
    });
  });

  test('an image and a document', async () => {
    await client.messages.create({
      ...hello,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixel } },
            { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'the whole report' }, title: 'Report' },
            { type: 'text', text: 'What is this?' },
          ],
        },
      ],
    });
    expect(sent()).toMatchObject({
      messages: [{ content: [{ type: 'image' }, { text: 'Report' }, { text: 'the whole report' }, { text: 'What is this?' }] }],
    });
    const refused = client.messages.create({
      ...hello,
      model: 'local/test-model',
      messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixel } }] }],
    });
    await expect(refused).rejects.toThrow(/does not take images/);
  });

  test('tokens are counted without a model', async () => {
    const before = product.provider.served();
    const { input_tokens: few } = await client.messages.countTokens({ model: hello.model, messages: hello.messages });
    const { input_tokens: more } = await client.messages.countTokens({
      model: hello.model,
      messages: [{ role: 'user', content: 'one two three '.repeat(100) }],
      tools: [tool],
    });
    expect(more).toBeGreaterThan(few + 300);
    expect(product.provider.served()).toBe(before);
  });

  test('errors have the classes of the package', async () => {
    const wrong = new Anthropic({ apiKey: 'x'.repeat(40), baseURL: product.url, maxRetries: 0 });
    await expect(wrong.messages.create(hello)).rejects.toBeInstanceOf(Anthropic.AuthenticationError);
    const forbidden = new Anthropic({ apiKey: tokenOf('mcp-client'), baseURL: product.url, maxRetries: 0 });
    await expect(forbidden.messages.create(hello)).rejects.toBeInstanceOf(Anthropic.PermissionDeniedError);
    const unknown = client.messages.create({ ...hello, model: 'gpt-nowhere' });
    await expect(unknown).rejects.toThrow(/Model not found: gpt-nowhere.*gateway\.compat\.models/);
    await expect(unknown).rejects.toBeInstanceOf(Anthropic.NotFoundError);
    await expect(client.messages.create({ ...hello, max_tokens: 0 })).rejects.toBeInstanceOf(Anthropic.BadRequestError);
    product.provider.queue({ text: ['half'], breakAfter: { deltas: 1, by: 'error' } });
    await expect(client.messages.stream(hello).finalMessage()).rejects.toBeInstanceOf(Anthropic.APIError);
  });

  test('disconnecting aborts the upstream call', async () => {
    const before = product.provider.aborted();
    product.provider.queue({ text: Array.from({ length: 200 }, () => 'word '), paceMs: 50 });
    const stream = client.messages.stream(hello);
    for await (const event of stream) if (event.type === 'content_block_delta') break;
    stream.abort();
    await expect.poll(() => product.provider.aborted()).toBe(before + 1);
  });
});
