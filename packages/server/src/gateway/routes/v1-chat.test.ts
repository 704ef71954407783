import { toFragment } from '../../kernel/json-fragment.ts';
import net from 'node:net';
import { ChatCompletion, ChatCompletionChunk, imageNotSupported, V1Error } from '@gatehouse/contract';
import OpenAI, { APIError, BadRequestError, NotFoundError, RateLimitError } from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CompletionRequest } from '../../features/conversations/turns/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import type { CallContext } from '../../kernel/call-context.ts';
import { outcome, post, type ScriptedTurn, startGateway, testTokens } from '../testing/gateway-fixture.ts';

const path = '/v1/chat/completions';
const user = { role: 'user', content: 'Hi' };

type Fixture = Awaited<ReturnType<typeof startGateway>>;

let script: ScriptedTurn = async () => ({});
let last: { request: CompletionRequest; call: CallContext } | undefined;
let fixture: Fixture;
beforeAll(async () => {
  fixture = await startGateway({
    turn: (request, call, sink) => {
      last = { request, call };
      return script(request, call, sink);
    },
  });
});
afterAll(() => fixture[Symbol.asyncDispose]());

function send(body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return post(fixture.address + path, testTokens.api, body, headers);
}

/** Data lines of a streamed answer, the last one as text. */
async function stream(
  body: object = {},
  headers: Record<string, string> = {},
): Promise<{ response: Response; chunks: ChatCompletionChunk[]; rest: string[] }> {
  const response = await send({ model: 'local/test-model', messages: [user], stream: true, ...body }, headers);
  const lines = (await response.text())
    .split('\n\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => line.slice(6));
  const chunks = lines.flatMap((line) => (line.startsWith('{"id"') ? [ChatCompletionChunk().parse(JSON.parse(line))] : []));
  return { response, chunks, rest: lines.filter((line) => !line.startsWith('{"id"')) };
}

const streaming =
  (...fragments: readonly string[]): ScriptedTurn =>
  async (_request, _call, sink) => {
    for (const fragment of fragments) {
      sink?.text(toFragment(fragment));
      sink?.flush();
    }
    return { text: fragments.join('') };
  };

describe('the body (B3, B4)', () => {
  it.each([
    ['no model', { messages: [user] }, 'model'],
    ['an empty model', { model: '', messages: [user] }, 'model'],
    ['no messages', { model: 'm' }, 'messages'],
    ['empty messages', { model: 'm', messages: [] }, 'messages'],
    ['a role it does not know', { model: 'm', messages: [{ role: 'tool', content: 'x' }] }, 'messages.0.role'],
    ['content that is a number', { model: 'm', messages: [{ role: 'user', content: 1 }] }, 'messages.0.content'],
    ['a block it does not know', { model: 'm', messages: [{ role: 'user', content: [{ type: 'audio' }] }] }, 'messages.0.content.0.type'],
    ['a temperature of 2.01', { model: 'm', messages: [user], temperature: 2.01 }, 'temperature'],
    ['max_tokens 0', { model: 'm', messages: [user], max_tokens: 0 }, 'max_tokens'],
    ['max_tokens 1.5', { model: 'm', messages: [user], max_tokens: 1.5 }, 'max_tokens'],
    ['stream as a string', { model: 'm', messages: [user], stream: 'true' }, 'stream'],
    ['an unknown field', { model: 'm', messages: [user], top_p: 1 }, 'top_p'],
    ['an unknown field of a message', { model: 'm', messages: [{ ...user, name: 'x' }] }, 'messages.0.name'],
    ['an unknown stream option', { model: 'm', messages: [user], stream_options: { chunk: 1 } }, 'stream_options.chunk'],
    [
      'only empty user messages',
      {
        model: 'm',
        messages: [
          { role: 'user', content: ' ' },
          { role: 'system', content: 'x' },
          { role: 'user', content: [] },
        ],
      },
      'messages',
    ],
    ['a list', [], undefined],
  ])('answers 400 to %s and names it', async (_what, body, param) => {
    const response = await send(body);
    const { error } = V1Error().parse(await response.json());
    expect([response.status, error.type, error.param]).toEqual([400, 'invalid_request_error', param ?? null]);
  });

  it('names every unknown field, the first one as param, along with other faults', async () => {
    const { error } = V1Error().parse(await (await send({ model: 1, messages: [user], tools: [], seed: 1, user: 'x' })).json());
    expect(error.param).toBe('tools');
    for (const name of ['tools', 'seed', 'user', 'model']) expect(error.message).toContain(`${name}: `);
  });

  it.each([
    [null, 'messages.0.content: expected string or array, received null'],
    [1, 'messages.0.content: expected string or array, received number'],
    [undefined, 'messages.0.content: required, expected string or array'],
  ])('names every form that content may have when it is %s', async (content, message) => {
    const { error } = V1Error().parse(await (await send({ model: 'm', messages: [{ role: 'user', content }] })).json());
    expect(error.message).toBe(message);
  });

  it('refuses an image with a specific error, among text and along with other faults', async () => {
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
    for (const body of [
      { model: 'm', messages: [{ role: 'user', content: [{ type: 'text', text: 'look' }, image] }] },
      { model: 'm', n: 1, messages: [{ role: 'user', content: [image] }] },
    ]) {
      const response = await send(body);
      const { error } = V1Error().parse(await response.json());
      expect([response.status, error.message.startsWith(imageNotSupported)]).toEqual([400, true]);
    }
  });

  it('passes the roles in order, joined blocks and the sampling options to the turn', async () => {
    await send(
      {
        model: 'm',
        temperature: 0.5,
        max_tokens: 7,
        messages: [
          { role: 'system', content: 's' },
          {
            role: 'user',
            content: [
              { type: 'text', text: 'a' },
              { type: 'text', text: 'b' },
            ],
          },
          { role: 'assistant', content: 'c' },
          user,
        ],
      },
      { 'x-request-id': 'r-1', traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` },
    );
    expect(last?.request).toEqual({
      completionId: expect.stringMatching(/^chatcmpl-[0-9a-f-]{36}$/),
      model: 'm',
      temperature: 0.5,
      maxTokens: 7,
      messages: [{ role: 'system', content: 's' }, { role: 'user', content: 'a\nb' }, { role: 'assistant', content: 'c' }, user],
    });
    expect(last?.call).toMatchObject({
      identity: { tokenId: 'api' },
      requestId: 'r-1',
      traceId: 'a'.repeat(32),
      transport: 'http',
      remoteAddress: '127.0.0.1',
    });
  });
});

describe('a whole answer', () => {
  it('has the declared fields and the internal reason in a header', async () => {
    script = async () => ({ text: 'Hé "there"', finishReason: 'max_steps' });
    const before = Math.floor(Date.now() / 1000);
    const response = await send({ model: 'any/name', messages: [user] });
    const completion = ChatCompletion().parse(await response.json());
    expect(completion).toMatchObject({
      model: 'any/name',
      choices: [{ message: { role: 'assistant', content: 'Hé "there"' }, finish_reason: 'length' }],
      usage: { prompt_tokens: 12, completion_tokens: 3, total_tokens: 15 },
    });
    expect(completion.created).toBeGreaterThanOrEqual(before);
    expect(completion.created).toBeLessThanOrEqual(Date.now() / 1000);
    expect(response.headers.get('x-gatehouse-finish-reason')).toBe('max_steps');
  });

  it.each([
    ['error', undefined, 500, 'server_error'],
    ['circuit_open', undefined, 500, 'server_error'],
    ['provider_degraded', undefined, 500, 'server_error'],
    ['timeout', undefined, 500, 'server_error'],
    ['error', 'rate_limit', 429, 'rate_limit_error'],
    ['budget_exceeded', undefined, 429, 'rate_limit_error'],
    ['aborted', undefined, 503, 'server_error'],
  ] as const)('fails when a turn ended with %s (%s) and nothing', async (finishReason, kind, status, type) => {
    script = async () => ({ text: '', finishReason, failure: { message: 'in short', kind: kind ?? finishReason, retryAfterMs: 2_500 } });
    for (const streamed of [false, true]) {
      const response = await send({ model: 'm', messages: [user], stream: streamed });
      expect([response.status, await response.json()]).toEqual([status, { error: { message: 'in short', type, param: null, code: null } }]);
      if (status === 429) expect(response.headers.get('retry-after')).toBe('3');
    }
  });

  it.each(['error', 'timeout', 'budget_exceeded', 'context_exhausted', 'output_starved'] as const)(
    'returns the partial text when a turn ended with %s after some text',
    async (finishReason) => {
      script = async () => ({ text: 'half', finishReason });
      const completion = ChatCompletion().parse(await (await send({ model: 'm', messages: [user] })).json());
      expect(completion.choices[0]).toMatchObject({ message: { content: 'half' }, finish_reason: 'stop' });
    },
  );

  it('refuses a conversation that does not fit, and never answers with an empty text', async () => {
    script = async () => ({ text: '', finishReason: 'context_exhausted', failure: { kind: 'context_exhausted', message: 'too long' } });
    for (const streamed of [false, true]) {
      const response = await send({ model: 'm', messages: [user], stream: streamed });
      expect([response.status, await response.json()]).toEqual([
        400,
        { error: { message: 'too long', type: 'invalid_request_error', param: 'messages', code: null } },
      ]);
    }
  });

  it('answers 404 for an unknown model', async () => {
    script = () => Promise.reject(new AppError('not_found', 'Model not found: nope', { param: 'model' }));
    for (const streamed of [false, true]) {
      const response = await send({ model: 'nope', messages: [user], stream: streamed });
      expect([response.status, await response.json()]).toEqual([
        404,
        { error: { message: 'Model not found: nope', type: 'not_found_error', param: 'model', code: null } },
      ]);
    }
  });
});

describe('a streamed answer (B12)', () => {
  it('sends role, content, finish, usage, [DONE], under one id', async () => {
    script = streaming('Hel', 'é "', '\n');
    const { response, chunks, rest } = await stream({}, { 'x-request-id': 'r-9' });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'x-request-id': 'r-9',
      'x-content-type-options': 'nosniff',
      'ratelimit-limit': '10000',
    });
    expect(chunks.map((chunk) => chunk.choices[0]?.delta)).toEqual([
      { role: 'assistant' },
      { content: 'Hel' },
      { content: 'é "' },
      { content: '\n' },
      {},
      undefined,
    ]);
    expect(chunks.map((chunk) => chunk.choices[0]?.finish_reason)).toEqual([null, null, null, null, 'stop', undefined]);
    expect(chunks.at(-1)?.usage).toEqual({ prompt_tokens: 12, completion_tokens: 3, total_tokens: 15 });
    expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
    expect(chunks[0]).not.toHaveProperty('gatehouse');
    expect(rest).toEqual(['[DONE]']);
  });

  it('omits the usage only on request', async () => {
    script = streaming('x');
    expect((await stream({ stream_options: { include_usage: false } })).chunks.some((chunk) => chunk.usage)).toBe(false);
    expect((await stream({ stream_options: {} })).chunks.some((chunk) => chunk.usage)).toBe(true);
  });

  it('reports the internal reason in the finish chunk on request', async () => {
    script = async (_request, _call, sink) => (sink?.text(toFragment('x')), { finishReason: 'context_loop' });
    const { chunks } = await stream({}, { 'x-gatehouse-extensions': '1' });
    expect(chunks.map((chunk) => chunk.gatehouse)).toEqual([undefined, undefined, { finish_reason: 'context_loop' }, undefined]);
  });

  it('sends an answer that no model streamed, and one without text', async () => {
    script = async () => ({ text: 'a "b"\n', finishReason: 'command' });
    expect((await stream()).chunks[1]?.choices[0]?.delta.content).toBe('a "b"\n');
    script = async () => ({ text: '' });
    expect((await stream()).chunks.map((chunk) => chunk.choices[0]?.delta)).toEqual([{ role: 'assistant' }, {}, undefined]);
  });

  it.each(['error', 'timeout', 'provider_degraded', 'aborted'] as const)(
    'ends in an error line, then [DONE], when a turn fails with %s after some text',
    async (finishReason) => {
      script = async (_request, _call, sink) => (
        sink?.text(toFragment('half')),
        sink?.flush(),
        { text: 'half', finishReason, failure: { message: 'upstream broke', kind: 'network' } }
      );
      const { response, chunks, rest } = await stream();
      expect(response.status).toBe(200);
      expect(chunks.map((chunk) => chunk.choices[0]?.finish_reason)).toEqual([null, null]);
      expect(rest).toEqual([JSON.stringify({ error: { message: 'upstream broke', type: 'server_error', param: null, code: null } }), '[DONE]']);
    },
  );

  it('hides an internal error after some text, too', async () => {
    script = async (_request, _call, sink) => {
      sink?.text(toFragment('half'));
      throw new Error('at /secret/path');
    };
    expect((await stream()).rest).toEqual([
      JSON.stringify({ error: { message: 'Internal error', type: 'server_error', param: null, code: null } }),
      '[DONE]',
    ]);
  });

  it('finishes when a budget ends it after some text', async () => {
    script = async (_request, _call, sink) => (sink?.text(toFragment('half')), { text: 'half', finishReason: 'budget_exceeded' });
    const { chunks, rest } = await stream();
    expect([chunks.at(-2)?.choices[0]?.finish_reason, rest]).toEqual(['stop', ['[DONE]']]);
  });

  it('sends output collected in one read in one write', async () => {
    script = async (_request, _call, sink) => {
      for (let i = 0; i < 5; i++) sink?.text(toFragment(`${i}`));
      sink?.flush();
      return {};
    };
    const response = await send({ model: 'm', messages: [user], stream: true });
    const first = await response.body?.getReader().read();
    expect(new TextDecoder().decode(first?.value).match(/"content":/g)).toHaveLength(5);
  });

  it('keeps a silent stream alive by comments, and from then on a failure is an event', async () => {
    const heard = Promise.withResolvers<void>();
    await using quick = await startGateway({
      deps: { keepAliveMs: 10 },
      turn: async () => {
        await heard.promise;
        return { text: '', finishReason: 'error', failure: { message: 'late', kind: 'network' } };
      },
    });
    const response = await post(quick.address + path, testTokens.api, { model: 'm', messages: [user], stream: true });
    let text = '';
    for await (const part of response.body!.pipeThrough(new TextDecoderStream())) {
      text += part;
      if (text.split(': keep-alive').length > 2) heard.resolve();
    }
    expect(response.status).toBe(200);
    expect(text).toMatch(/^(: keep-alive\n\n){2,}data: \{"error":\{"message":"late".*\}\n\ndata: \[DONE\]\n\n$/);
  });
});

describe('a client that is slow or gone (B13)', () => {
  const request = `POST ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${testTokens.api}\r\ncontent-type: application/json\r\n`;
  const body = JSON.stringify({ model: 'm', messages: [user], stream: true });
  const whole = `${request}content-length: ${body.length}\r\n\r\n${body}`;

  function connect(): net.Socket {
    const socket = net.connect(fixture.port, '127.0.0.1', () => socket.write(whole));
    return socket.on('error', () => {});
  }

  it('aborts the turn when the client disconnects, 100 times, and leaves nothing behind', async () => {
    let aborted = 0;
    script = async (_request, call, sink) => {
      sink?.text(toFragment('x'));
      sink?.flush();
      await new Promise((resolve) => call.signal.addEventListener('abort', resolve));
      aborted += 1;
      return { finishReason: 'aborted' };
    };
    for (let i = 0; i < 100; i++) {
      const socket = connect();
      await new Promise((resolve) => socket.once('data', resolve));
      socket.destroy();
    }
    await expect.poll(() => aborted).toBe(100);
    await expect.poll(() => fixture.gateway.connections().http).toBeLessThan(10);
  });

  it('pauses the turn while the client does not read, and continues when it does', async () => {
    let produced = 0;
    let waited = 0;
    const piece = 'x'.repeat(16_384);
    script = async (_request, _call, sink) => {
      for (let i = 0; i < 2_000; i++) {
        sink?.text(toFragment(piece));
        produced += 1;
        if (sink?.flush() === false) {
          waited += 1;
          await sink.drained();
        }
      }
      return {};
    };
    const socket = connect();
    socket.pause();
    await expect
      .poll(async () => {
        const before = produced;
        await new Promise((resolve) => setTimeout(resolve, 50));
        return waited > 0 && produced === before;
      })
      .toBe(true);
    expect(produced).toBeLessThan(1_000);
    let text = '';
    socket.on('data', (chunk: Buffer) => (text = text.slice(-20) + chunk.toString('latin1')));
    socket.resume();
    await expect.poll(() => text.includes('[DONE]')).toBe(true);
    socket.destroy();
  });

  it('ends the stream of a revoked token with the reason', async () => {
    fixture.putToken('brief', 'brief-secret-0123456789-abcdefghijkl', ['api']);
    const ended = Promise.withResolvers<void>();
    script = async (_request, call, sink) => {
      sink?.text(toFragment('x'));
      sink?.flush();
      await new Promise((resolve) => call.signal.addEventListener('abort', resolve));
      ended.resolve();
      return { finishReason: 'aborted' };
    };
    const response = await post(fixture.address + path, 'brief-secret-0123456789-abcdefghijkl', { model: 'm', messages: [user], stream: true });
    fixture.tokens.remove('brief');
    expect(await response.text()).toMatch(
      /"content":"x"[^]*data: {"error":{"message":"The token was revoked or has expired","type":"authentication_error","param":null,"code":null}}\n\ndata: \[DONE\]\n\n$/,
    );
    await ended.promise;
  });
});

describe('the openai package', () => {
  const client = (options: object = {}): OpenAI => new OpenAI({ apiKey: testTokens.api, baseURL: `${fixture.address}/v1`, ...options });
  const messages = [{ role: 'user' as const, content: 'Hi' }];

  it('reads a whole answer and a streamed one', async () => {
    script = async () => ({ text: 'Hello' });
    expect((await client().chat.completions.create({ model: 'm', messages })).choices[0]?.message.content).toBe('Hello');
    script = streaming('Hel', 'lo');
    const pieces: string[] = [];
    let usage: number | undefined;
    for await (const chunk of await client().chat.completions.create({ model: 'm', messages, stream: true })) {
      pieces.push(chunk.choices[0]?.delta.content ?? '');
      usage = chunk.usage?.total_tokens ?? usage;
    }
    expect([pieces.join(''), usage]).toEqual(['Hello', outcome.tokensUsed.total]);
  });

  it('raises its own errors', async () => {
    await expect(client().chat.completions.create({ model: 'm', messages, top_p: 1 })).rejects.toSatisfy(
      (error) => error instanceof BadRequestError && error.type === 'invalid_request_error' && error.param === 'top_p',
    );
    script = () => Promise.reject(new AppError('not_found', 'Model not found: m', { param: 'model' }));
    await expect(client().chat.completions.create({ model: 'm', messages })).rejects.toBeInstanceOf(NotFoundError);
    script = async (_request, _call, sink) => (sink?.text(toFragment('half')), sink?.flush(), { finishReason: 'error', text: 'half' });
    await expect(
      (async () => {
        for await (const chunk of await client().chat.completions.create({ model: 'm', messages, stream: true })) void chunk;
      })(),
    ).rejects.toSatisfy((error) => error instanceof APIError && error.type === 'server_error');
    script = async () => ({ finishReason: 'budget_exceeded', text: '' });
    await expect(client().chat.completions.create({ model: 'm', messages })).rejects.toBeInstanceOf(BadRequestError);
    script = async () => ({
      finishReason: 'budget_exceeded',
      text: '',
      failure: { kind: 'budget_exceeded', message: 'used up', transient: false, retryAfterMs: 1 },
    });
    await expect(client({ maxRetries: 0 }).chat.completions.create({ model: 'm', messages })).rejects.toBeInstanceOf(RateLimitError);
  });

  it('lists models and fetches one whose id has a slash', async () => {
    const ids = (await client().models.list()).data.map((model) => model.id);
    expect(ids).toEqual(['local/test-model', 'local/org/second', 'agent/default', 'agent/helper']);
    for (const id of ids) expect(await client().models.retrieve(id)).toMatchObject({ id, object: 'model', created: 0 });
  });
});
