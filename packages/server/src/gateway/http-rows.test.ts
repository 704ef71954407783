import net from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { startTestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { post, rawExchange, startGateway, testTokens } from './testing/gateway-fixture.ts';

/**
 * The table of reliability §3.2 and the test for each row:
 *
 * | Row | Tested by |
 * |---|---|
 * | B1 body ceiling | body.test.ts (one byte more, declared, chunked, compressed); here: nothing parsed, what is buffered, lying lengths |
 * | B2 exactly the limit | body.test.ts |
 * | B3 strict body | routes/v1-chat.test.ts, the table of refused bodies |
 * | B4 images refused by name | routes/v1-chat.test.ts |
 * | B5 limiter and its exemptions | app.test.ts |
 * | B6 keys are not minted | app.test.ts; the cap of keys in limits.test.ts |
 * | B7 sliding limit of a socket | rpc/websocket.test.ts |
 * | B8 JSON safety | kernel/json.test.ts, body.test.ts; here: the same on /rpc and /ws |
 * | B9 smuggling shapes | body.test.ts |
 * | B10 locale | routes/api-chat.test.ts |
 * | B11 model id spans segments | routes/v1-models.test.ts |
 * | B12 order of a stream | routes/v1-chat.test.ts |
 * | B13 the client disconnects, the work stops | routes/v1-chat.test.ts (the turn); here: lanes, timers, sockets and the provider |
 */

const limit = 1_048_576;
const mib = 1_048_576;

/** Data that was read and dropped does not count as held. */
setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

describe('bodies beyond the ceiling (B1)', () => {
  let fixture: Awaited<ReturnType<typeof startGateway>>;
  beforeAll(async () => {
    fixture = await startGateway();
  });
  afterAll(() => fixture[Symbol.asyncDispose]());

  const head = (path: string, ...lines: readonly string[]): string =>
    `${[`POST ${path} HTTP/1.1`, 'host: localhost', `authorization: Bearer ${testTokens.all}`, 'content-type: application/json', ...lines].join('\r\n')}\r\n\r\n`;
  const chunk = Buffer.from(`10000\r\n${' '.repeat(65_536)}\r\n`);

  it('are refused on every route before anything is parsed', async () => {
    const parse = vi.spyOn(JSON, 'parse');
    const paths = ['/rpc', '/v1/chat/completions', '/v1/responses', '/v1/embeddings', '/api/chat', '/api/chat/stream'];
    try {
      const replies = await Promise.all(
        paths.flatMap((path) => [
          rawExchange(fixture.port, `${head(path, `content-length: ${limit + 1}`)}${' '.repeat(limit + 1)}`),
          rawExchange(fixture.port, Buffer.concat([Buffer.from(head(path, 'transfer-encoding: chunked')), ...Array<Buffer>(17).fill(chunk)])),
        ]),
      );
      expect(replies.map(({ text, closed }) => [text.slice(0, 13), closed])).toEqual(replies.map(() => ['HTTP/1.1 413 ', true]));
      expect(parse).not.toHaveBeenCalled();
    } finally {
      parse.mockRestore();
    }
  });

  it('hold at most the limit and one read of memory each while they arrive, and nothing afterwards', async () => {
    const clients = 16;
    const held = (): number => {
      collectGarbage();
      const { external, arrayBuffers } = process.memoryUsage();
      return Math.max(external, arrayBuffers);
    };
    const sockets = await Promise.all(
      Array.from(
        { length: clients },
        () =>
          new Promise<{ socket: net.Socket; answer: () => string }>((resolve) => {
            let answer = '';
            const socket = net.connect(fixture.port, '127.0.0.1', () => resolve({ socket, answer: () => answer }));
            socket.on('error', () => {}).on('data', (data: Buffer) => (answer += data.toString('latin1')));
          }),
      ),
    );
    // Memory is released shortly after it was collected.
    let before = held();
    await expect.poll(() => before - (before = held()), { interval: 100 }).toBeLessThan(mib / 16);
    const flushed = sockets.map(({ socket }) => {
      socket.write(head('/rpc', 'transfer-encoding: chunked'));
      for (let at = 0; at < 15; at += 1) socket.write(chunk);
      return new Promise((resolve) => socket.write(chunk, resolve));
    });
    await Promise.all(flushed);
    // All of it is below the limit and is waited for.
    await expect.poll(() => held() - before).toBeGreaterThan(clients * 0.9 * mib);
    expect(held() - before).toBeLessThan(clients * (limit + 65_536) + 2 * mib);
    // Each continues for sixteen times as much, and is dropped.
    for (const { socket } of sockets) for (let at = 0; at < 256 && socket.writable; at += 1) socket.write(chunk);
    await expect.poll(() => sockets.every(({ answer }) => answer().startsWith('HTTP/1.1 413 '))).toBe(true);
    await expect.poll(() => held() - before).toBeLessThan(2 * mib);
    await expect.poll(() => sockets.every(({ socket }) => socket.destroyed)).toBe(true);
  });

  it('do not pass with a false length', async () => {
    const ping = '{"jsonrpc":"2.0","id":1,"method":"system.ping"}';
    // Shorter than the body: the rest is not a request, and no response is sent that could be taken for another's.
    const short = await rawExchange(fixture.port, `${head('/rpc', 'content-length: 10')}${ping}`);
    expect([short.text.replace(/^HTTP\/1\.1 400 [^]*$/, ''), short.closed, fixture.calls]).toEqual(['', true, []]);
    // Longer than the body when the client disconnects: nothing runs.
    const socket = net.connect(fixture.port, '127.0.0.1', () => socket.end(`${head('/rpc', `content-length: ${ping.length + 1}`)}${ping}`));
    await new Promise((resolve) =>
      socket
        .on('error', () => {})
        .once('close', resolve)
        .resume(),
    );
    expect(fixture.calls).toEqual([]);
  });
});

describe('JSON safety on JSON-RPC (B8)', () => {
  let fixture: Awaited<ReturnType<typeof startGateway>>;
  let socket: WebSocket;
  beforeAll(async () => {
    fixture = await startGateway({ config: { wsMessageRateLimit: { maxMessages: 1_000 } } });
    socket = new WebSocket(`ws://127.0.0.1:${fixture.port}/ws`, { headers: { authorization: `Bearer ${testTokens.all}` } });
    await new Promise((resolve) => socket.once('open', resolve));
  });
  afterAll(async () => {
    socket.terminate();
    await fixture[Symbol.asyncDispose]();
  });

  async function answers(text: string): Promise<readonly unknown[]> {
    const reply = new Promise<unknown>((resolve) => socket.once('message', (data) => resolve(JSON.parse(String(data)))));
    socket.send(text);
    const http = await post(`${fixture.address}/rpc`, testTokens.all, text);
    return [await http.json(), await reply];
  }
  const withParams = (params: string): string => `{"jsonrpc":"2.0","id":1,"method":"system.ping","params":${params}}`;
  const nested = (levels: number): string => withParams(`{"_a":${'['.repeat(levels - 2)}${']'.repeat(levels - 2)}}`);

  it('accepts 64 levels', async () => {
    for (const answer of await answers(nested(64))) expect(answer).toMatchObject({ id: 1, result: expect.anything() });
  });

  it.each([
    ['half a million levels', '['.repeat(500_000)],
    ['NaN', withParams('{"_a":NaN}')],
    ['Infinity', withParams('{"_a":-Infinity}')],
  ])('answers parse_error to %s', async (_what, text) => {
    for (const answer of await answers(text)) expect(answer).toMatchObject({ id: null, error: { code: -32700 } });
    expect(Object.prototype).not.toHaveProperty('polluted');
  });

  it.each([
    ['65 levels', nested(65)],
    ['a prototype', withParams('{"__proto__":{"polluted":1}}')],
    ['a prototype by escapes', withParams('{"_a":{"\\u005f_proto__":{"polluted":1}}}')],
  ])('answers invalid_envelope, with its id, to %s: it is valid JSON', async (_what, text) => {
    for (const answer of await answers(text)) expect(answer).toMatchObject({ id: 1, error: { code: -32600 } });
    expect(Object.prototype).not.toHaveProperty('polluted');
  });

  it.each([
    ['duplicate keys: the last one counts', '{"jsonrpc":"2.0","id":7,"id":1,"method":"nothing","method":"system.ping"}'],
    ['half a surrogate pair', withParams('{"_a":"\\ud800"}')],
    ['keys of objects that are no such thing', withParams('{"_a":{"constructor":{"prototype":{"polluted":1}},"toString":1,"then":1}}')],
  ])('is not moved by %s', async (_what, text) => {
    for (const answer of await answers(text)) expect(answer).toMatchObject({ id: 1, result: expect.anything() });
    expect(Object.prototype).not.toHaveProperty('polluted');
  });
});

it('leaves nothing behind after 500 streams whose clients disconnected (B13)', async () => {
  // Text, and then silence: only the client's disconnect can end it.
  await using server = await startTestServer({
    provider: { journal: 0, answer: () => ({ text: ['a', 'b', 'c'], breakAfter: { deltas: 2, by: 'stall' } }) },
  });
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on('warning', onWarning);
  const { port } = new URL(server.url);
  const requests: readonly (readonly [string, object])[] = [
    ['/v1/chat/completions', { model: 'mock/mock-fast', stream: true, messages: [{ role: 'user', content: 'x' }] }],
    ['/api/chat/stream', { message: 'x' }],
    ['/v1/responses', { model: 'mock/mock-fast', stream: true, input: 'x' }],
  ];

  /** Opens a stream, waits for text of the model, and disconnects. */
  function go(n: number): Promise<void> {
    const [path, body] = requests[n % requests.length] ?? ['', {}];
    const text = JSON.stringify('message' in body ? { ...body, sessionKey: { userId: `u${n}`, channelId: 'c' } } : body);
    return new Promise((resolve, reject) => {
      let answer = '';
      const socket = net.connect(Number(port), '127.0.0.1', () =>
        socket.write(
          `POST ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${server.token}\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
        ),
      );
      socket.on('error', () => {});
      socket.on('close', () => resolve());
      socket.on('data', (data: Buffer) => {
        answer += data.toString('latin1');
        if (!answer.startsWith('HTTP/1.1 200 ')) reject(new Error(answer));
        else if (/"(content|text|delta)":"a/.test(answer)) socket.destroy();
      });
    });
  }
  async function goAll(count: number): Promise<void> {
    let next = 0;
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        while (next < count) await go((next += 1));
      }),
    );
  }
  const left = (): Record<string, number> =>
    process.getActiveResourcesInfo().reduce<Record<string, number>>((counts, kind) => ({ ...counts, [kind]: (counts[kind] ?? 0) + 1 }), {});
  const settled = async (aborted: number): Promise<void> => {
    await expect.poll(() => server.provider.aborted()).toBe(aborted);
    await expect.poll(() => server.provider.openSockets()).toBe(0);
    await expect.poll(async () => (await server.client.call('gateway.status', {})).turns).toEqual({ running: 0, queued: 0 });
  };

  await goAll(8);
  await settled(8);
  const before = left();
  await goAll(500);
  await settled(508);
  await expect.poll(() => left()['Timeout'] ?? 0).toBeLessThanOrEqual((before['Timeout'] ?? 0) + 2);
  await expect.poll(() => left()['TCPSocketWrap'] ?? 0).toBeLessThanOrEqual((before['TCPSocketWrap'] ?? 0) + 2);
  process.off('warning', onWarning);
  // Node warns of more than ten listeners on one emitter.
  expect(warnings).toEqual([]);
}, 60_000);
