import { getEventListeners } from 'node:events';
import { createStepClock, type FakeProvider, startFakeProvider } from '@gatehouse/testkit';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type ModelClient, ModelError, type ModelRequest, type ModelSink } from '../model.ts';
import { collectingSink, testModel, testRequest } from '../testing.ts';
import { vendors } from '../vendors.ts';
import { Upstream } from '../wire/upstream.ts';
import { createChatClient } from './client.ts';

const key = 'sk-canary-0123456789abcdef';
const clock = createStepClock();
let provider: FakeProvider;
let client: ModelClient;

function clientFor(type: keyof typeof vendors) {
  const upstream = new Upstream({
    provider: 'mock',
    baseUrl: provider.url,
    headers: [{ authorization: `Bearer ${key}` }],
    secrets: [key],
    maxConnections: 8,
    clock,
  });
  return createChatClient(upstream, vendors[type]);
}

beforeEach(async () => {
  provider = await startFakeProvider({ deltas: 20 });
  client = clientFor('openai-compatible');
});
afterEach(async () => {
  await client[Symbol.asyncDispose]();
  await provider.close();
});

async function failure(request: ModelRequest, sink?: ModelSink): Promise<ModelError> {
  const error: unknown = await client.generate(request, sink).catch((thrown: unknown) => thrown);
  if (!(error instanceof ModelError)) throw new Error(`expected a ModelError, got ${String(error)}`);
  return error;
}

const body = () => provider.requests.at(-1)?.body;

describe('answers', () => {
  test('a whole answer and a streamed one are the same', async () => {
    const whole = await client.generate(testRequest());
    const sink = collectingSink();
    const streamed = await client.generate(testRequest(), sink);
    expect(streamed).toEqual(whole);
    expect(sink.fragments).toHaveLength(20);
    expect(whole).toMatchObject({
      finish: 'stop',
      usage: { input: 20, output: 20, cacheRead: 0, estimated: false },
      responseId: 'chatcmpl-mock0000000000000000000000',
    });
  });

  test('one read of the upstream is one flush', async () => {
    provider = await restart(provider, 200);
    await client[Symbol.asyncDispose]();
    client = clientFor('openai-compatible');
    const sink = collectingSink();
    await client.generate(testRequest(), sink);
    expect(sink.fragments).toHaveLength(200);
    expect(sink.flushes).toBeLessThan(20);
  });

  test.for([1, 2, 7, 64, 1000])('a stream written %i bytes at a time reads the same', async (splitBytes) => {
    provider.queue({ text: ['Grüße ', '😀 ', '"so" ', '\\ ', 'ende'], splitBytes, usage: { input: 5, output: 6 } });
    expect(await client.generate(testRequest(), collectingSink())).toMatchObject({
      text: 'Grüße 😀 "so" \\ ende',
      usage: { input: 5, output: 6, estimated: false },
    });
  });

  test('CR LF and a missing [DONE] are accepted', async () => {
    provider.queue({ text: ['a', 'b'], crlf: true, noDone: true });
    expect(await client.generate(testRequest(), collectingSink())).toMatchObject({ text: 'ab', finish: 'stop' });
  });

  test.for([true, false])('tool calls arrive (streamed: %s)', async (streamed) => {
    provider.queue({
      toolCalls: [
        { id: 'call_1', name: 'read_file', arguments: '{"path":"a.txt"}' },
        { id: 'call_2', name: 'list', arguments: '{}' },
      ],
    });
    const result = await client.generate(testRequest(), streamed ? collectingSink() : undefined);
    expect(result).toMatchObject({
      text: '',
      finish: 'tool_calls',
      toolCalls: [
        { id: 'call_1', name: 'read_file', arguments: '{"path":"a.txt"}' },
        { id: 'call_2', name: 'list', arguments: '{}' },
      ],
    });
  });

  test.for([true, false])('usage that is not reported is estimated and marked (streamed: %s)', async (streamed) => {
    provider.queue({ text: 'four words or so', usage: null });
    const { usage } = await client.generate(testRequest(), streamed ? collectingSink() : undefined);
    expect(usage.estimated).toBe(true);
    expect(usage.output).toBeGreaterThanOrEqual(4);
    expect(usage.input).toBeGreaterThan(0);
  });

  test('a provider that answers a stream request without streaming is understood', async () => {
    provider.queue({
      body: JSON.stringify({ id: 'x', choices: [{ message: { content: 'all "at" once' }, finish_reason: 'stop' }] }),
      contentType: 'application/json',
    });
    const sink = collectingSink();
    expect(await client.generate(testRequest(), sink)).toMatchObject({ text: 'all "at" once' });
    expect(sink.fragments).toEqual(['all "at" once']);
  });
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
    const sent = JSON.stringify(body());
    for (const text of ['s\ufffd', 'a\ufffdb', '\ufffdc', 'd\ufffd', 'e\ufffd', '\u{1f600}']) expect(sent).toContain(text);
    expect(sent).not.toContain('\\ud');
  });

  test('carries system, conversation, tools, limits and key', async () => {
    await client.generate(
      testRequest({
        system: ['You are Gate.', 'Be brief.'],
        messages: [
          { role: 'user', content: 'read it' },
          { role: 'assistant', content: '', toolCalls: [{ id: 'call_1', name: 'read', arguments: '{"p":1}' }] },
          { role: 'tool', content: 'done', toolCallId: 'call_1', toolName: 'read' },
        ],
        tools: [{ name: 'read', description: 'Reads', parameters: { type: 'object' } }],
        temperature: 0.3,
        maxTokens: 99,
      }),
      collectingSink(),
    );
    expect(provider.requests[0]?.headers).toMatchObject({ authorization: `Bearer ${key}`, 'content-type': 'application/json' });
    expect(body()).toEqual({
      model: 'mock-fast',
      messages: [
        { role: 'system', content: 'You are Gate.\n\nBe brief.' },
        { role: 'user', content: 'read it' },
        { role: 'assistant', content: null, tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'read', arguments: '{"p":1}' } }] },
        { role: 'tool', tool_call_id: 'call_1', content: 'done' },
      ],
      stream: true,
      temperature: 0.3,
      max_tokens: 99,
      stream_options: { include_usage: true },
      tools: [{ type: 'function', function: { name: 'read', description: 'Reads', parameters: { type: 'object' } } }],
    });
  });

  test('uses the dialect of the vendor', async () => {
    await using openai = clientFor('openai');
    await openai.generate(testRequest({ maxTokens: 5, temperature: 1, model: { ...testModel, modelId: 'gpt-5-mini' } }), collectingSink());
    expect(body()).toMatchObject({ max_completion_tokens: 5, stream_options: { include_usage: true, include_obfuscation: false } });
    expect(body()).not.toHaveProperty('temperature');
    await using mistral = clientFor('mistral');
    await mistral.generate(
      testRequest({
        messages: [
          { role: 'assistant', content: 'x', toolCalls: [{ id: 'call_toolong', name: 't', arguments: '{}' }] },
          { role: 'tool', content: '', toolCallId: 'call_toolong', toolName: 't' },
        ],
      }),
      collectingSink(),
    );
    expect(body()).not.toHaveProperty('stream_options');
    expect(body()).toMatchObject({
      messages: [{ tool_calls: [{ id: expect.stringMatching(/^[a-z0-9]{9}$/) }] }, { tool_call_id: expect.stringMatching(/^[a-z0-9]{9}$/) }],
    });
  });

  test('a server that refuses stream_options is called without it from then on', async () => {
    provider.queue({ status: 400, error: { message: 'Unknown field: stream_options' } });
    expect(await client.generate(testRequest(), collectingSink())).toMatchObject({ finish: 'stop' });
    await client.generate(testRequest(), collectingSink());
    expect(provider.requests.map(({ body: sent }) => Object.hasOwn(Object(sent), 'stream_options'))).toEqual([true, false, false]);
  });
});

describe('refusals', () => {
  test.for([
    [401, { message: 'bad key' }, 'auth'],
    [401, { message: 'pay', code: 'billing_not_active' }, 'billing'],
    [403, { message: 'no key of this project', code: 'invalid_organization' }, 'auth'],
    [403, { message: 'flagged', code: 'content_policy_violation' }, 'bad_request'],
    [402, { message: 'pay', code: 'insufficient_balance' }, 'billing'],
    [429, { message: 'slow down: billing, API key' }, 'rate_limit'],
    [429, { message: 'You exceeded your current quota', code: 'insufficient_quota' }, 'billing'],
    [400, { message: 'bad field' }, 'bad_request'],
    [400, { message: 'no money', type: 'billing_error' }, 'billing'],
    [400, { message: 'input: "my API key is invalid, insufficient quota"', code: 'invalid_value' }, 'bad_request'],
    [400, { message: 'too long', code: 'context_length_exceeded' }, 'context_length'],
    [404, { message: 'no such model' }, 'bad_request'],
    [413, { message: 'too large' }, 'bad_request'],
    [413, { message: 'Request too large: tokens per minute', code: 'rate_limit_exceeded' }, 'bad_request'],
    [413, { message: 'prompt is too long' }, 'context_length'],
    [500, { message: 'oops' }, 'server'],
    [502, { message: 'oops' }, 'server'],
    [503, { message: 'busy' }, 'overloaded'],
    [529, { message: 'busy', type: 'overloaded_error' }, 'overloaded'],
    [302, { message: 'elsewhere' }, 'bad_response'],
  ] as const)('%i %o is %s', async ([status, error, kind]) => {
    provider.queue({ status, error, ...(status === 302 ? { headers: { location: `${provider.url}/models` } } : {}) }, { status, error });
    const thrown = await failure(testRequest(), collectingSink());
    expect(thrown).toMatchObject({ kind, status });
    expect(thrown.partial).toBeUndefined();
    expect(thrown.possibly).toBeUndefined();
    expect(provider.served()).toBe(1);
  });

  test.for([
    [403, { message: 'no' }, 'auth'],
    [402, { message: 'This request requires more credits, or fewer max_tokens' }, 'billing'],
    [400, { message: 'API key not valid. Please pass a valid API key.', code: 'INVALID_ARGUMENT' }, 'auth'],
  ] as const)('%i %o refuses the request, and possibly the key or the account: %s', async ([status, error, possibly]) => {
    provider.queue({ status, error });
    expect(await failure(testRequest(), collectingSink())).toMatchObject({ kind: 'bad_request', possibly, status });
  });

  test.for([
    [400, { code: 400, status: 'INVALID_ARGUMENT', message: 'API key not valid.', details: [{ reason: 'API_KEY_INVALID' }] }, { kind: 'auth' }],
    [403, { code: 403, message: 'requires moderation', metadata: { flagged_input: 'x', reasons: ['y'] } }, { kind: 'bad_request' }],
  ] as const)('%i with reasons: %o', async ([status, error, expected]) => {
    provider.queue({ status, body: JSON.stringify({ error }) });
    const thrown = await failure(testRequest(), collectingSink());
    expect(thrown).toMatchObject(expected);
    expect(thrown.possibly).toBeUndefined();
  });

  test.for([
    [{ 'retry-after': '7' }, 7000],
    [{ 'retry-after-ms': '250', 'retry-after': '7' }, 250],
    [{ 'retry-after': 'soon' }, undefined],
  ] as const)('Retry-After %o is read as %s ms', async ([headers, expected]) => {
    provider.queue({ status: 429, headers });
    expect((await failure(testRequest())).retryAfterMs).toBe(expected);
  });

  test('Retry-After as a date is the time until then', async () => {
    provider.queue({ status: 429, headers: { 'retry-after': new Date(clock.now() + 60_000).toUTCString() } });
    const { retryAfterMs } = await failure(testRequest());
    expect(retryAfterMs).toBe(60_000);
  });

  test('a provider’s message is bounded and never contains the key', async () => {
    provider.queue({ status: 401, error: { message: `Incorrect key ${key} and sk-proj-ABCDEFGHIJKL0123\u0007\n${'x'.repeat(5000)}` } });
    const { message } = await failure(testRequest());
    expect(message).not.toContain(key);
    expect(message).not.toContain('sk-proj');
    expect(message).not.toContain('\n');
    expect(message.length).toBeLessThan(360);
  });
});

describe('broken answers', () => {
  test('an error inside the stream is an error with the text before it', async () => {
    provider.queue({
      text: ['one ', 'two '],
      breakAfter: { deltas: 2, by: 'error' },
      error: { message: 'rate_limit reached', type: 'rate_limit_error' },
    });
    const sink = collectingSink();
    const error = await failure(testRequest(), sink);
    expect(error).toMatchObject({ kind: 'rate_limit', partial: { text: 'one two ', usage: { estimated: true } } });
    expect(sink.fragments.join('')).toBe('one two ');
  });

  test.for([
    ['end', 'bad_response'],
    ['cut', 'network'],
    ['malformed', 'bad_response'],
  ] as const)('a stream that breaks by "%s" is %s, never a short clean answer', async ([by, kind]) => {
    provider.queue({ text: ['one ', 'two ', 'three'], breakAfter: { deltas: 2, by } });
    expect(await failure(testRequest(), collectingSink())).toMatchObject({ kind, partial: { text: 'one two ' } });
  });

  test('an error before the first text has no partial result', async () => {
    provider.queue({ text: ['one'], breakAfter: { deltas: 0, by: 'error' } });
    const error = await failure(testRequest(), collectingSink());
    expect(error.kind).toBe('server');
    expect(error.partial).toBeUndefined();
  });

  test.for([
    ['not JSON at all', 'application/json'],
    ['<html>login</html>', 'text/html'],
    ['{"choices":[]}', 'application/json'],
    ['', 'application/json'],
  ] as const)('%j as a whole answer is a bad response', async ([text, contentType]) => {
    provider.queue({ body: text, contentType });
    expect(await failure(testRequest())).toMatchObject({ kind: 'bad_response' });
  });

  test('an error body with status 200 is an error', async () => {
    provider.queue(
      { body: '{"error":{"message":"Overloaded","code":503}}', contentType: 'application/json' },
      { body: '{"error":{"message":"Overloaded","code":503}}' },
    );
    expect(await failure(testRequest())).toMatchObject({ kind: 'overloaded' });
    expect(await failure(testRequest(), collectingSink())).toMatchObject({ kind: 'overloaded' });
  });

  test('a refused connection is a network error', async () => {
    await provider.close();
    expect(await failure(testRequest())).toMatchObject({ kind: 'network' });
  });
});

describe('time and abort', () => {
  test('no first byte of a stream within 60 s is a timeout', async () => {
    provider.queue({ hang: true });
    const failed = failure(testRequest({ timeoutMs: 600_000 }), collectingSink());
    await expect.poll(() => provider.served()).toBe(1);
    clock.advance(59_000);
    expect(provider.openSockets()).toBe(1);
    clock.advance(1001);
    expect(await failed).toMatchObject({ kind: 'timeout', message: expect.stringContaining('60000 ms') });
    await expect.poll(() => provider.openSockets()).toBe(0);
  });

  test('60 s of silence inside a stream are a timeout, with the text before it', async () => {
    provider.queue({ text: ['one ', 'two ', 'three'], breakAfter: { deltas: 2, by: 'stall' } });
    const sink = collectingSink();
    const failed = failure(testRequest({ timeoutMs: 600_000 }), sink);
    await expect.poll(() => sink.fragments).toHaveLength(2);
    clock.advance(61_000);
    expect(await failed).toMatchObject({ kind: 'timeout', partial: { text: 'one two ' } });
    await expect.poll(() => provider.openSockets()).toBe(0);
  });

  test('the deadline of the whole call applies to unstreamed answers, that of the first byte does not', async () => {
    provider.queue({ hang: true });
    const failed = failure(testRequest({ timeoutMs: 120_000 }));
    await expect.poll(() => provider.served()).toBe(1);
    clock.advance(119_000);
    expect(provider.openSockets()).toBe(1);
    clock.advance(1001);
    expect(await failed).toMatchObject({ kind: 'timeout', message: expect.stringContaining('120000 ms') });
  });

  test('abort closes the socket of the provider at once', async () => {
    const controller = new AbortController();
    provider.queue({ text: Array.from({ length: 100 }, () => 'x'), paceMs: 20 });
    const sink = collectingSink();
    const failed = failure(testRequest({ signal: controller.signal }), sink);
    await expect.poll(() => sink.fragments.length).toBeGreaterThan(2);
    controller.abort();
    expect(await failed).toMatchObject({ kind: 'aborted', partial: { text: sink.fragments.join('') } });
    await expect.poll(() => provider.aborted()).toBe(1);
    expect(provider.openSockets()).toBe(0);
  });

  test('a call that was aborted before it started is not sent', async () => {
    expect(await failure(testRequest({ signal: AbortSignal.abort() }))).toMatchObject({ kind: 'aborted' });
    expect(provider.served()).toBe(0);
  });

  test('a call that is aborted while its client is being set up is not sent, and no call leaves a listener behind', async () => {
    const controller = new AbortController();
    const failed = failure(testRequest({ signal: controller.signal }));
    controller.abort();
    expect(await failed).toMatchObject({ kind: 'aborted' });
    expect(provider.served()).toBe(0);
    const { signal } = new AbortController();
    provider.queue({ status: 500 });
    await failure(testRequest({ signal }));
    await client.generate(testRequest({ signal }), collectingSink());
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  test('a full sink pauses the provider and loses nothing', async () => {
    await provider.close();
    provider = await startFakeProvider({ deltas: 20_000 });
    await client[Symbol.asyncDispose]();
    client = clientFor('openai-compatible');
    const sink = collectingSink();
    sink.block();
    const answer = client.generate(testRequest({ timeoutMs: 600_000 }), sink);
    await expect.poll(() => sink.flushes).toBe(1);
    const held = sink.fragments.length;
    // Waiting for the reader is not the provider's fault.
    clock.advance(120_000);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(sink.fragments.length).toBe(held);
    expect(held).toBeLessThan(20_000);
    sink.release();
    expect((await answer).text).toBe(sink.fragments.join(''));
    expect(sink.fragments).toHaveLength(20_000);
  });

  test('abort ends a paused stream', async () => {
    const controller = new AbortController();
    const sink = collectingSink();
    sink.block();
    provider.queue({ text: Array.from({ length: 100 }, () => 'x'), paceMs: 5 });
    const failed = failure(testRequest({ signal: controller.signal }), sink);
    await expect.poll(() => sink.flushes).toBe(1);
    controller.abort();
    expect(await failed).toMatchObject({ kind: 'aborted' });
    await expect.poll(() => provider.openSockets()).toBe(0);
  });
});

async function restart(old: FakeProvider, deltas: number) {
  await old.close();
  return startFakeProvider({ deltas });
}
