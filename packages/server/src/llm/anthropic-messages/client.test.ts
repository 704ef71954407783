import { createStepClock, type FakeProvider, startFakeProvider } from '@gatehouse/testkit';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type ModelClient, ModelError } from '../model.ts';
import { collectingSink, testRequest } from '../testing.ts';
import { Upstream } from '../wire/upstream.ts';
import { anthropicVersion, createMessagesClient } from './client.ts';
import { MessageStream } from './stream.ts';

let provider: FakeProvider;
let client: ModelClient;
beforeEach(async () => {
  provider = await startFakeProvider({ deltas: 20 });
  client = createMessagesClient(
    new Upstream({
      provider: 'anthropic',
      baseUrl: provider.url,
      headers: [{ 'x-api-key': 'key', ...anthropicVersion }],
      secrets: ['key'],
      maxConnections: 8,
      clock: createStepClock(),
    }),
  );
});
afterEach(async () => {
  await client[Symbol.asyncDispose]();
  await provider.close();
});

describe('the request', () => {
  test('sends no lone surrogate, which providers refuse', async () => {
    await client.generate(
      testRequest({
        system: ['s\ud800'],
        messages: [
          { role: 'user', content: 'a\ud800b' },
          { role: 'assistant', content: '\udc00c' },
          { role: 'user', content: '\ud83d\ude00' },
          { role: 'assistant', content: '', toolCalls: [{ id: 'c1', name: 'read', arguments: '{"path":"d\ud800"}' }] },
          { role: 'tool', content: 'e\ud800', toolCallId: 'c1', toolName: 'read' },
        ],
      }),
    );
    const sent = JSON.stringify(provider.requests[0]?.body);
    for (const text of ['s\ufffd', 'a\ufffdb', '\ufffdc', 'd\ufffd', 'e\ufffd', '\u{1f600}']) expect(sent).toContain(text);
    expect(sent).not.toContain('\\ud');
  });

  test('marks the ends of repeated prefixes for the cache and joins neighbours of one role', async () => {
    await client.generate(
      testRequest({
        system: ['Stable.', 'Middle.', 'Today.'],
        cacheRetention: 'long',
        temperature: 0.5,
        tools: [{ name: 'read', description: 'Reads', parameters: { type: 'object' } }],
        messages: [
          { role: 'user', content: 'go' },
          {
            role: 'assistant',
            content: '',
            toolCalls: [
              { id: 'call:1', name: 'read', arguments: '{"a":1}' },
              { id: 'b', name: 'read', arguments: 'oops' },
            ],
          },
          { role: 'tool', content: 'one', toolCallId: 'call:1', toolName: 'read' },
          { role: 'tool', content: '', toolCallId: 'b', toolName: 'read', isError: true },
          { role: 'user', content: 'and now?' },
        ],
      }),
    );
    const mark = { cache_control: { type: 'ephemeral', ttl: '1h' } };
    const renamed = expect.stringMatching(/^call_[0-9a-f]{24}$/);
    expect(provider.requests[0]?.path).toBe('/v1/messages');
    expect(provider.requests[0]?.headers).toMatchObject({ 'x-api-key': 'key', 'anthropic-version': '2023-06-01' });
    expect(provider.requests[0]?.body).toEqual({
      model: 'mock-fast',
      max_tokens: 4096,
      stream: false,
      temperature: 0.5,
      system: [
        { type: 'text', text: 'Stable.', ...mark },
        { type: 'text', text: 'Middle.' },
        { type: 'text', text: 'Today.', ...mark },
      ],
      tools: [{ name: 'read', description: 'Reads', input_schema: { type: 'object' } }],
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'go' }] },
        {
          role: 'assistant',
          content: [
            { type: 'tool_use', id: renamed, name: 'read', input: { a: 1 } },
            { type: 'tool_use', id: 'b', name: 'read', input: { malformed: 'oops' } },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: renamed, content: 'one' },
            { type: 'tool_result', tool_use_id: 'b', content: '(no output)', is_error: true },
            { type: 'text', text: 'and now?', ...mark },
          ],
        },
      ],
    });
  });

  test('sets no cache marks when none are wanted', async () => {
    await client.generate(testRequest({ system: ['s'] }));
    expect(JSON.stringify(provider.requests[0]?.body)).not.toContain('cache_control');
  });
});

describe('answers', () => {
  test.for([true, false])('text, tool calls and usage arrive; input includes cached tokens (streamed: %s)', async (streamed) => {
    provider.queue({
      text: ['Let me ', 'look.'],
      toolCalls: [{ id: 'toolu_1', name: 'read', arguments: '{"path":"a"}' }],
      usage: { input: 100, output: 9, cacheRead: 60, cacheWrite: 30 },
    });
    const sink = streamed ? collectingSink() : undefined;
    expect(await client.generate(testRequest(), sink)).toEqual({
      text: 'Let me look.',
      toolCalls: [{ id: 'toolu_1', name: 'read', arguments: '{"path":"a"}' }],
      finish: 'tool_calls',
      usage: { input: 100, output: 9, cacheRead: 60, cacheWrite: 30, estimated: false },
      responseId: 'msg_mock000000000000000000',
    });
    expect(sink?.fragments ?? ['Let me ', 'look.']).toEqual(['Let me ', 'look.']);
  });

  test.for([
    ['max_tokens', 'length'],
    ['refusal', 'content_filter'],
    ['stop_sequence', 'stop'],
  ] as const)('stop reason %s is %s', async ([finishReason, finish]) => {
    provider.queue({ text: 'x', finishReason });
    expect(await client.generate(testRequest(), collectingSink())).toMatchObject({ finish });
  });

  test('reads the same text however the bytes are split', () => {
    const texts = fc.array(fc.oneof(fc.string({ unit: 'grapheme', maxLength: 12 }), fc.constantFrom('"', '\\', '"text":"', '\n\n')), {
      maxLength: 20,
    });
    const event = (type: string, value: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...value })}\n\n`;
    fc.assert(
      fc.property(texts, fc.array(fc.nat(), { maxLength: 12 }), (deltas, cuts) => {
        const stream =
          event('message_start', { message: { id: 'm', usage: { input_tokens: 3, output_tokens: 1 } } }) +
          event('content_block_start', { index: 0, content_block: { type: 'thinking', thinking: '' } }) +
          event('content_block_delta', { index: 0, delta: { type: 'thinking_delta', thinking: 'hm' } }) +
          deltas.map((text) => event('content_block_delta', { index: 1, delta: { type: 'text_delta', text } })).join('') +
          event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 5 } }) +
          event('message_stop', {});
        const bytes = Buffer.from(stream);
        const edges = [0, ...cuts.map((cut) => cut % bytes.length), bytes.length].toSorted((a, b) => a - b);
        const sink = collectingSink();
        const reader = new MessageStream(testRequest(), sink, true);
        for (let i = 1; i < edges.length; i += 1) {
          reader.push(bytes.subarray(edges[i - 1], edges[i]));
          reader.advance();
        }
        expect(reader.end()).toMatchObject({ text: deltas.join(''), usage: { input: 3, output: 5, estimated: false } });
        expect(sink.fragments.join('')).toBe(deltas.join(''));
      }),
    );
  });
});

describe('failures', () => {
  const failure = async (signal?: AbortSignal) => {
    const error: unknown = await client
      .generate(testRequest(signal === undefined ? {} : { signal }), collectingSink())
      .catch((thrown: unknown) => thrown);
    return error instanceof ModelError ? error : new Error(`expected a ModelError, got ${String(error)}`);
  };

  test('an overloaded event inside the stream keeps the text before it', async () => {
    provider.queue({ text: ['one ', 'two '], breakAfter: { deltas: 2, by: 'error' } });
    expect(await failure()).toMatchObject({ kind: 'overloaded', partial: { text: 'one two ', usage: { input: 20, estimated: true } } });
  });

  test.for([
    ['end', 'bad_response'],
    ['cut', 'network'],
  ] as const)('a stream that breaks by "%s" is %s', async ([by, kind]) => {
    provider.queue({ text: ['one ', 'two '], breakAfter: { deltas: 1, by } });
    expect(await failure()).toMatchObject({ kind, partial: { text: 'one ' } });
  });

  test('a used-up balance that only the message of a 400 names refuses the request, and possibly the account', async () => {
    provider.queue({ status: 400, error: { message: 'Your credit balance is too low to access the API', type: 'invalid_request_error' } });
    expect(await failure()).toMatchObject({ kind: 'bad_request', possibly: 'billing', status: 400 });
  });

  test('abort closes the socket', async () => {
    const controller = new AbortController();
    provider.queue({ text: Array.from({ length: 100 }, () => 'x'), paceMs: 10 });
    const failed = failure(controller.signal);
    await expect.poll(() => provider.served()).toBe(1);
    controller.abort();
    expect(await failed).toMatchObject({ kind: 'aborted' });
    await expect.poll(() => provider.openSockets()).toBe(0);
  });
});
