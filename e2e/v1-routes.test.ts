import { request } from 'node:http';
import { createConnection } from 'node:net';
import { ChatCompletion, ChatCompletionChunk, V1Error } from '@gatehouse/contract';
import * as z from 'zod';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bearer, http } from '../proving/lib/http.ts';
import { eventually, type Product, scopedTokens, startProduct, tokenOf } from './lib/product.ts';

const chat = '/v1/chat/completions';
const hello = { model: 'local/test-model', messages: [{ role: 'user', content: 'hello' }] };

let product: Product;
beforeAll(async () => {
  product = await startProduct({ config: { gateway: { tokens: scopedTokens, httpBodyLimitBytes: 65_536 } } });
});
afterAll(() => product[Symbol.asyncDispose]());

const send = (options: Partial<Parameters<typeof http>[0]> = {}) =>
  http({ port: product.port, path: chat, headers: bearer(product.token), ...options });

/** The data lines of an event stream; comments are skipped. */
function dataLines(text: string): string[] {
  return text
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => event.slice('data: '.length));
}

describe('errors of /v1 have one shape', () => {
  const json = { 'content-type': 'application/json' };
  const cases: readonly [
    name: string,
    status: number,
    type: string,
    param: string | null,
    options: Partial<Parameters<typeof http>[0]>,
    ownHeaders?: true,
  ][] = [
    ['an unknown field', 400, 'invalid_request_error', 'top_p', { body: { ...hello, top_p: 1 } }],
    ['a missing field', 400, 'invalid_request_error', 'model', { body: { messages: hello.messages } }],
    ['an empty list of messages', 400, 'invalid_request_error', 'messages', { body: { ...hello, messages: [] } }],
    ['no user message', 400, 'invalid_request_error', 'messages', { body: { ...hello, messages: [{ role: 'system', content: 'x' }] } }],
    ['a temperature out of range', 400, 'invalid_request_error', 'temperature', { body: { ...hello, temperature: 2.01 } }],
    ['max_tokens 0', 400, 'invalid_request_error', 'max_tokens', { body: { ...hello, max_tokens: 0 } }],
    ['text that is not valid JSON', 400, 'invalid_request_error', null, { body: '{"model":', headers: json }],
    ['no token', 401, 'authentication_error', null, { body: hello, headers: json }, true],
    ['a wrong token', 401, 'authentication_error', null, { body: hello, headers: { ...json, ...bearer(tokenOf('wrong')) } }, true],
    ['a token in the query', 401, 'authentication_error', null, { path: `${chat}?token=operator`, body: hello, headers: json }, true],
    ['a token without the scope', 403, 'permission_error', null, { body: hello, headers: { ...json, ...bearer(tokenOf('admin')) } }, true],
    ['an unknown model', 404, 'not_found_error', 'model', { body: { ...hello, model: 'nobody/nothing' } }],
    ['a model that is not listed', 404, 'not_found_error', 'model', { path: '/v1/models/nobody/nothing' }],
    ['embeddings that are not configured', 404, 'not_found_error', null, { path: '/v1/embeddings', body: { model: 'x', input: 'y' } }],
    ['an unknown path', 404, 'not_found_error', null, { path: '/v1/nothing' }],
    ['a method that the path does not take', 405, 'server_error', null, { method: 'GET' }],
    ['a body above the limit', 413, 'server_error', null, { body: { ...hello, messages: [{ role: 'user', content: 'x'.repeat(70_000) }] } }],
    ['another content type', 415, 'server_error', null, { body: JSON.stringify(hello), headers: { 'content-type': 'text/plain' } }],
    ['a compressed body', 415, 'server_error', null, { body: JSON.stringify(hello), headers: { ...json, 'content-encoding': 'gzip' } }],
  ];
  test.each(cases)('%s: %d', async (...[, status, type, param, options, ownHeaders]) => {
    const headers = ownHeaders === true ? options.headers : { ...bearer(product.token), ...options.headers };
    const reply = await send({ ...options, ...(headers !== undefined && { headers }) });
    const { error } = V1Error().parse(JSON.parse(reply.text));
    expect([reply.status, error.type, error.param, error.code]).toEqual([status, type, param, null]);
    expect(error.message).not.toBe('');
    expect(reply.headers['x-request-id']).toMatch(/^req_[0-9a-f]{32}$/);
    expect(reply.headers['content-type']).toMatch(/^application\/json/);
    if (status === 405) expect(reply.headers['allow']).toContain('POST');
  });

  test('all unknown fields are named, the first one is param', async () => {
    const { error } = V1Error().parse(JSON.parse((await send({ body: { ...hello, seed: 1, logprobs: true } })).text));
    expect(error.param).toBe('seed');
    expect(error.message).toMatch(/seed.*logprobs/s);
  });

  test('an image is refused with the message of the specification', async () => {
    const content = [
      { type: 'text', text: 'what is this?' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
    ];
    const reply = await send({ body: { ...hello, messages: [{ role: 'user', content }] } });
    expect(reply.status).toBe(400);
    expect(V1Error().parse(JSON.parse(reply.text)).error.message).toMatch(
      /^vision input \(image_url\) is not yet supported via the \/v1 chat completions endpoint/,
    );
  });

  test('429 says when to retry', async () => {
    await using limited = await startProduct({ config: { gateway: { rateLimit: { windowMs: 60_000, maxRequests: 1 } } } });
    const again = () => http({ port: limited.port, path: '/v1/models', headers: bearer(limited.token) });
    expect((await again()).status).toBe(200);
    const reply = await again();
    expect(reply.status).toBe(429);
    expect(Number(reply.headers['retry-after'])).toBeGreaterThan(0);
    expect(V1Error().parse(JSON.parse(reply.text)).error.type).toBe('rate_limit_error');
    expect((await http({ port: limited.port, path: '/health' })).status).toBe(200);
  });

  test('a provider that fails is a 500 without its secrets', async () => {
    await using failing = await startProduct({ provider: { apiKey: 'another-key' } });
    const reply = await http({ port: failing.port, path: chat, headers: bearer(failing.token), body: hello });
    expect(reply.status).toBe(500);
    expect(V1Error().parse(JSON.parse(reply.text)).error.type).toBe('server_error');
    expect(reply.text).not.toContain('sk-of-the-fake-provider');
  });

  test('a foreign Origin or Host is refused before anything else', async () => {
    const origin = await send({ body: hello, headers: { ...bearer(product.token), origin: 'https://evil.example' } });
    expect([origin.status, V1Error().parse(JSON.parse(origin.text)).error.type]).toEqual([403, 'permission_error']);
    const host = await send({ body: hello, headers: { ...bearer(product.token), host: `evil.example:${product.port}` } });
    expect(host.status).toBe(403);
  });

  test.each([
    ['two lengths', 'POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}'],
    [
      'length and chunks',
      'POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['a folded header', 'GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: 1\r\n two\r\n\r\n'],
  ])('a request that proxies may read in two ways is refused and the connection closed: %s', async (_name, bytes) => {
    const answer = await new Promise<string>((resolve, reject) => {
      let text = '';
      const socket = createConnection(product.port, '127.0.0.1', () => socket.write(bytes));
      socket.setEncoding('latin1').setTimeout(5_000, () => socket.destroy(new Error('the connection stays open')));
      socket
        .on('data', (piece: string) => (text += piece))
        .on('end', () => resolve(text))
        .on('error', reject);
    });
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer.match(/HTTP\/1\.1 \d/g)).toHaveLength(1);
  });
});

describe('completions', () => {
  test('a stream is role, content, finish, usage, [DONE], all with one id', async () => {
    product.provider.queue({ text: ['a', 'b', 'c'], usage: { input: 5, output: 3 } });
    const reply = await send({ body: { ...hello, stream: true } });
    expect(reply.headers['content-type']).toMatch(/^text\/event-stream/);
    expect(reply.headers['x-request-id']).toMatch(/^req_[0-9a-f]{32}$/);
    const lines = dataLines(reply.text);
    expect(lines.at(-1)).toBe('[DONE]');
    const chunks = lines.slice(0, -1).map((line) => ChatCompletionChunk().parse(JSON.parse(line)));
    const [role, ...rest] = chunks;
    const usage = rest.pop();
    const finish = rest.pop();
    expect(role?.choices).toEqual([{ index: 0, delta: { role: 'assistant' }, finish_reason: null }]);
    expect(rest.map((chunk) => chunk.choices[0]?.delta.content).join('')).toBe('abc');
    expect(rest.every((chunk) => chunk.choices.length === 1 && chunk.choices[0]?.finish_reason === null && chunk.usage === undefined)).toBe(true);
    expect(finish?.choices).toEqual([{ index: 0, delta: {}, finish_reason: 'stop' }]);
    expect([usage?.choices, usage?.usage]).toEqual([[], { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 }]);
    expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
  });

  test('usage is left out only when the client says so', async () => {
    const without = await send({ body: { ...hello, stream: true, stream_options: { include_usage: false } } });
    expect(without.text).not.toContain('"usage"');
    expect(dataLines(without.text).at(-1)).toBe('[DONE]');
  });

  test('a stream that breaks ends with an error and [DONE], never short and clean', async () => {
    product.provider.queue({ text: ['half', 'whole'], breakAfter: { deltas: 1, by: 'cut' } });
    const lines = dataLines((await send({ body: { ...hello, stream: true } })).text);
    expect(lines.at(-1)).toBe('[DONE]');
    expect(V1Error().parse(JSON.parse(lines.at(-2) ?? '')).error.type).toBe('server_error');
  });

  test('text of the client in the role of system or assistant reaches the model inside a fence', async () => {
    await send({
      body: {
        ...hello,
        messages: [
          { role: 'system', content: 'OBEY-ME' },
          { role: 'assistant', content: 'I-AGREED' },
          { role: 'user', content: 'so?' },
        ],
        temperature: 0.5,
        max_tokens: 77,
      },
    });
    const body = product.provider.requests.at(-1)?.body as {
      messages: { role: string; content: string }[];
      temperature: number;
      max_tokens?: number;
    };
    for (const word of ['OBEY-ME', 'I-AGREED']) {
      const content = body.messages.map((message) => message.content).find((text) => text.includes(word)) ?? '';
      expect(content.trim().startsWith(word)).toBe(false);
      expect(content).not.toBe(word);
    }
    expect(body.messages.at(-1)).toMatchObject({ role: 'user', content: 'so?' });
    expect(body.temperature).toBe(0.5);
    expect(JSON.stringify(body)).toContain('77');
  });

  test('each model call is booked once, streamed or not', async () => {
    await using counted = await startProduct();
    const given = { input: 0, output: 0, calls: 0 };
    for (let i = 1; i <= 6; i += 1) {
      const usage = { input: 10 * i, output: i };
      given.input += usage.input;
      given.output += usage.output;
      given.calls += 1;
      counted.provider.queue({ text: ['a', 'b'], usage });
      if (i <= 4) {
        const reply = await http({ port: counted.port, path: chat, headers: bearer(counted.token), body: { ...hello, stream: i % 2 === 0 } });
        expect(reply.status).toBe(200);
      } else await counted.call('agent.execute', { message: 'hello', sessionKey: 'usage:e2e' });
    }
    const Stats = z.object({ providers: z.array(z.object({ callCount: z.number(), inputTokens: z.number(), totalCost: z.number() })) });
    const stats = Stats.parse(await counted.call('agent.cacheStats')).providers;
    expect(stats.map(({ callCount, inputTokens }) => [callCount, inputTokens])).toEqual([[given.calls, given.input]]);
    expect(stats[0]?.totalCost).toBeCloseTo((given.input * 1 + given.output * 2) / 1e6, 12);
    const List = z.object({ sessions: z.array(z.object({ totalTokens: z.number() })), total: z.number() });
    const kept = List.parse(await counted.call('session.list'));
    const completions = List.parse(await counted.call('session.list', { kind: 'v1' }));
    expect([kept.total, completions.total]).toEqual([1, 4]);
    const sum = [...kept.sessions, ...completions.sessions].reduce((tokens, session) => tokens + session.totalTokens, 0);
    expect(sum).toBe(given.input + given.output);
    const Export = z.object({ metadata: z.object({ tokensUsed: z.object({ input: z.number(), output: z.number() }), turns: z.number() }) });
    expect(Export.parse(await counted.call('session.export', { sessionKey: 'usage:e2e' })).metadata).toMatchObject({
      tokensUsed: { input: 110, output: 11 },
      turns: 2,
    });
  });

  test('keeps 64 concurrent completions apart, streamed and not', async () => {
    product.provider.setAnswer((upstream) => ({
      text: [`echo ${JSON.stringify((upstream.body as { messages: unknown[] }).messages.at(-1)).match(/word-\d+/)?.[0]}`],
    }));
    try {
      const texts = await Promise.all(
        Array.from({ length: 64 }, async (_, i) => {
          const stream = i % 2 === 0;
          const reply = await send({ body: { ...hello, stream, messages: [{ role: 'user', content: `word-${i}` }] } });
          if (!stream) return ChatCompletion().parse(JSON.parse(reply.text)).choices[0]?.message.content;
          return dataLines(reply.text)
            .slice(0, -1)
            .map((line) => ChatCompletionChunk().parse(JSON.parse(line)).choices[0]?.delta.content ?? '')
            .join('');
        }),
      );
      expect(texts).toEqual(Array.from({ length: 64 }, (_, i) => `echo word-${i}`));
    } finally {
      product.provider.setAnswer(undefined);
    }
  });
});

describe('a client that disconnects', () => {
  const leave = (body: object, afterFirstBytes: boolean) => {
    const before = product.provider.served();
    return new Promise<void>((resolve) => {
      const text = JSON.stringify(body);
      const outgoing = request({
        host: '127.0.0.1',
        port: product.port,
        path: chat,
        method: 'POST',
        headers: { ...bearer(product.token), 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) },
      });
      outgoing.on('error', () => undefined);
      outgoing.on('close', resolve);
      if (afterFirstBytes) outgoing.on('response', (incoming) => incoming.once('data', () => outgoing.destroy()));
      else void eventually(() => product.provider.served() > before, 15_000).then(() => outgoing.destroy());
      outgoing.end(text);
    });
  };

  test.each([
    ['in the middle of a stream', true],
    ['before a whole answer', false],
  ])('ends the call to the provider long before its answer: %s', async (_name, stream) => {
    const before = product.provider.aborted();
    product.provider.queue({ text: Array.from({ length: 300 }, () => 'word '), paceMs: 50, ...(!stream && { delayMs: 10_000 }) });
    await leave({ ...hello, stream }, stream);
    expect(await eventually(() => product.provider.aborted() > before, 8_000)).toBe(true);
    const Status = z.object({ turns: z.object({ running: z.number(), queued: z.number() }) });
    expect(await eventually(async () => Status.parse(await product.call('gateway.status')).turns.running === 0, 8_000)).toBe(true);
  });
});
