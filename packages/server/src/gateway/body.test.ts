import net from 'node:net';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { post, rawExchange, startGateway, testTokens } from './testing/gateway-fixture.ts';

const limit = 1_048_576;
const path = '/v1/chat/completions';

/** A valid completion request of exactly `bytes` bytes. */
function bodyOf(bytes: number): string {
  const empty = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: '' }] });
  return empty.replace('""', `"${'x'.repeat(bytes - empty.length)}"`);
}

const head = (...more: readonly string[]): string =>
  [`POST ${path} HTTP/1.1`, 'host: localhost', `authorization: Bearer ${testTokens.all}`, 'content-type: application/json', ...more].join('\r\n');

describe('request bodies (B1, B2, B8)', () => {
  let fixture: Awaited<ReturnType<typeof startGateway>>;
  let turns = 0;
  beforeAll(async () => {
    fixture = await startGateway({
      turn: async () => {
        turns += 1;
        return {};
      },
    });
  });
  afterAll(() => fixture[Symbol.asyncDispose]());

  it('accepts exactly the limit and refuses one byte more, with a body and a closed connection', async () => {
    expect((await post(fixture.address + path, testTokens.all, bodyOf(limit))).status).toBe(200);
    const refused = await post(fixture.address + path, testTokens.all, bodyOf(limit + 1));
    expect([refused.status, refused.headers.get('connection'), await refused.json()]).toEqual([
      413,
      'close',
      {
        error: {
          message: `The body must not be larger than ${limit} bytes; gateway.httpBodyLimitBytes sets the limit`,
          type: 'server_error',
          param: null,
          code: null,
        },
      },
    ]);
  });

  it('refuses a declared length before a byte of the body is sent', async () => {
    const { text, closed } = await rawExchange(fixture.port, `${head(`content-length: ${limit + 1}`)}\r\n\r\n`);
    expect(text).toMatch(/^HTTP\/1\.1 413 /);
    expect(closed).toBe(true);
  });

  it('does not ask for a body that it would refuse, and asks for one that it accepts', async () => {
    expect((await rawExchange(fixture.port, `${head(`content-length: ${limit + 1}`, 'expect: 100-continue')}\r\n\r\n`)).text).toMatch(
      /^HTTP\/1\.1 413 /,
    );
    expect((await rawExchange(fixture.port, `${head('content-length: 10', 'expect: 100-continue')}\r\n\r\n`, 200)).text).toBe(
      'HTTP/1.1 100 Continue\r\n\r\n',
    );
  });

  it('counts a chunked body and stops reading it when it is too long', async () => {
    const socket = net.connect(fixture.port, '127.0.0.1');
    socket.on('error', () => {});
    const answered = new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(chunk.toString())));
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write(`${head('transfer-encoding: chunked')}\r\n\r\n`);
    const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`;
    const timer = setInterval(() => socket.write(chunk), 1);
    expect(await answered).toMatch(/^HTTP\/1\.1 413 /);
    await closed;
    clearInterval(timer);
    expect(turns).toBe(1);
  });

  it('refuses a client that starts fast and then takes more than 30 seconds', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const socket = net.connect(fixture.port, '127.0.0.1');
      socket.on('error', () => {});
      let answer = '';
      socket.on('data', (chunk: Buffer) => (answer += chunk.toString()));
      socket.write(`${head('content-length: 200000')}\r\n\r\n`);
      await expect.poll(() => vi.getTimerCount()).toBe(1);
      // A single write that fits into the socket's buffers; answered requests after it show that it was read.
      await new Promise((sent) => socket.write(Buffer.alloc(100_000, 'x'), sent));
      for (let at = 0; at < 3; at += 1) await fetch(`${fixture.address}/health`).then((response) => response.text());
      vi.advanceTimersByTime(29_000);
      await fetch(`${fixture.address}/health`).then((response) => response.text());
      expect(answer).toBe('');
      vi.advanceTimersByTime(1_000);
      await expect.poll(() => answer).toMatch(/^HTTP\/1\.1 408 /);
      socket.destroy();
    } finally {
      vi.useRealTimers();
    }
  });

  it.each(['gzip', 'br', 'deflate', 'x'])('refuses content-encoding %s', async (encoding) => {
    const response = await post(fixture.address + path, testTokens.all, bodyOf(200), { 'content-encoding': encoding });
    expect(response.status).toBe(415);
    expect(await response.json()).toMatchObject({ error: { type: 'server_error' } });
  });

  it('requires application/json, and accepts a request without a content type', async () => {
    expect((await post(fixture.address + path, testTokens.all, bodyOf(200), { 'content-type': 'text/plain' })).status).toBe(415);
    expect((await post(fixture.address + path, testTokens.all, bodyOf(200), { 'content-type': 'application/jsonx' })).status).toBe(415);
    expect((await post(fixture.address + path, testTokens.all, bodyOf(200), { 'content-type': 'Application/JSON; charset=utf-8' })).status).toBe(200);
    const silent = head(`content-length: 100`, 'connection: close').replace('content-type: application/json\r\n', '');
    expect((await rawExchange(fixture.port, `${silent}\r\n\r\n${bodyOf(100)}`)).text).toMatch(/^HTTP\/1\.1 200 /);
  });

  it.each([
    ['no JSON', '{"model":'],
    ['nothing', ''],
    ['NaN', '{"temperature":NaN}'],
    ['a 500,000-fold nesting', '['.repeat(500_000)],
    ['a prototype', '{"__proto__":{"polluted":1},"model":"m","messages":[{"role":"user","content":"x"}]}'],
  ])('answers 400 to %s', async (_what, body) => {
    const response = await post(fixture.address + path, testTokens.all, body);
    expect([response.status, await response.json()]).toMatchObject([400, { error: { type: 'invalid_request_error' } }]);
    expect(Object.prototype).not.toHaveProperty('polluted');
  });

  it('answers 400 to bytes that are not UTF-8', async () => {
    const body = Buffer.concat([Buffer.from('{"model":"'), Buffer.from([0x80]), Buffer.from('"}')]);
    const { text } = await rawExchange(
      fixture.port,
      Buffer.concat([Buffer.from(`${head(`content-length: ${body.length}`, 'connection: close')}\r\n\r\n`), body]),
    );
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
    expect(text).toContain('UTF-8');
  });
});

describe('bytes that are not an acceptable request (B9)', () => {
  let fixture: Awaited<ReturnType<typeof startGateway>>;
  beforeAll(async () => {
    fixture = await startGateway();
  });
  afterAll(() => fixture[Symbol.asyncDispose]());

  it.each([
    ['two lengths and an encoding', 'POST /rpc HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['two content-lengths', 'POST /rpc HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!'],
    ['a folded header', 'GET /health HTTP/1.1\r\nhost: localhost\r\nx-a: b\r\n c\r\n\r\n'],
    ['bare line feeds', 'GET /health HTTP/1.1\nhost: localhost\n\n'],
    ['a bare line feed in the header', 'GET /health HTTP/1.1\r\nhost: localhost\nx-a: b\r\n\r\n'],
    ['a space before the colon', 'GET /health HTTP/1.1\r\nhost: localhost\r\ncontent-length : 5\r\n\r\nhello'],
    ['an encoding that does not end in chunked', 'POST /rpc HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n'],
    ['two hosts', 'GET /health HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\nconnection: close\r\n\r\n'],
    ['no host', 'GET /health HTTP/1.1\r\n\r\n'],
    ['no HTTP', '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\r\n\r\n'],
  ])('answers 400 to %s and closes', async (_what, bytes) => {
    const { text, closed } = await rawExchange(fixture.port, bytes);
    expect(text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(text.match(/HTTP\/1\.1 \d/g)).toHaveLength(1);
    expect(closed).toBe(true);
  });

  it('answers 431 to a header beyond 16 KiB', async () => {
    const { text, closed } = await rawExchange(fixture.port, `GET /health HTTP/1.1\r\nhost: localhost\r\nx-a: ${'a'.repeat(17_000)}\r\n\r\n`);
    expect(text).toMatch(/^HTTP\/1\.1 431 /);
    expect(closed).toBe(true);
  });
});
