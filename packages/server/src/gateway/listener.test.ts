import net from 'node:net';
import { createStepClock } from '@gatehouse/testkit/step-clock';
import { describe, expect, it } from 'vitest';
import { createListener } from './listener.ts';
import { createSocketGuard } from './socket-guard.ts';
import { startGateway, testTokens } from './testing/gateway-fixture.ts';

function connect(port: number): { readonly socket: net.Socket; readonly closed: Promise<string> } {
  let text = '';
  const socket = net.connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  return { socket, closed: new Promise((resolve) => socket.once('close', () => resolve(text))) };
}

it('sets the limits that apply before any of our code runs', () => {
  const server = createListener({ maxConnections: 7, isSocketPath: () => false });
  expect(server).toMatchObject({ headersTimeout: 5_000, requestTimeout: 3_600_000, timeout: 0, maxConnections: 7 });
  expect(server.keepAliveTimeout).toBeGreaterThan(60_000);
});

describe('slow clients (R18)', () => {
  it('are cut within 12 seconds, with 408 for a header that does not come, while others are served', async () => {
    await using fixture = await startGateway();
    const slow = Array.from({ length: 20 }, () => {
      const client = connect(fixture.port);
      client.socket.write('GET /health HTTP/1.1\r\nhost: local');
      return client;
    });
    const silent = connect(fixture.port);
    const slowBody = connect(fixture.port);
    slowBody.socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${testTokens.all}\r\ncontent-length: 1000\r\n\r\n{`,
    );
    const stranger = connect(fixture.port);
    stranger.socket.write('POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{');
    expect(await stranger.closed).toMatch(/^HTTP\/1\.1 401 [^]*connection: close\r\n/i);
    expect((await fetch(`${fixture.address}/health`)).status).toBe(200);
    for (const answer of await Promise.all(slow.map((client) => client.closed))) expect(answer).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
    await silent.closed;
    expect(await slowBody.closed).toMatch(
      /^HTTP\/1\.1 408 [^]*connection: close\r\n[^]*"The body of the request was not complete in time","type":"server_error"/i,
    );
  }, 12_000);
});

describe('unauthenticated clients', () => {
  it('hold a bounded number of idle sockets, not counting those that showed a token', async () => {
    const clock = createStepClock();
    const guard = createSocketGuard({ clock, tls: false, max: 3 });
    const server = net.createServer((socket) => guard.track(socket));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const accepted: net.Socket[] = [];
    server.on('connection', (socket: net.Socket) => accepted.push(socket));
    const clients: ReturnType<typeof connect>[] = [];
    const join = async (): Promise<void> => {
      const before = accepted.length;
      clients.push(connect(port));
      await expect.poll(() => accepted.length).toBe(before + 1);
    };
    for (let i = 0; i < 5; i++) await join();
    expect(guard.size).toBe(5);
    guard.prove(accepted[0] as net.Socket);
    guard.begin(accepted[1] as net.Socket);
    clock.advance(2_000);
    await join();
    await expect.poll(() => guard.size).toBe(4);
    expect(accepted.map((socket) => socket.destroyed)).toEqual([false, false, true, true, false, false]);
    for (const client of clients) client.socket.destroy();
    server.close();
  });

  it.each([
    ['a transfer coding that nobody knows', `transfer-encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`],
    ['a chunk whose size is not a number', `transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`],
  ])('get an error in the format of the route when a body is badly framed: %s (B9)', async (_what, rest) => {
    await using fixture = await startGateway();
    const client = connect(fixture.port);
    client.socket.write(`POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${testTokens.all}\r\n${rest}`);
    expect(await client.closed).toMatch(/^HTTP\/1\.1 400 [^]*connection: close[^]*"type":"invalid_request_error"/i);
  });

  it('do not get another’s response when bytes follow that are not a request', async () => {
    const finish = Promise.withResolvers<void>();
    await using fixture = await startGateway({ turn: async () => (await finish.promise, { text: 'x' }) });
    const client = connect(fixture.port);
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }] });
    client.socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${testTokens.all}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    client.socket.write('garbage\r\n\r\n');
    expect(await client.closed).toBe('');
    finish.resolve();
  });
});
