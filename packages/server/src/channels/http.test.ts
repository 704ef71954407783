import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { createStepClock } from '@gatehouse/testkit';
import { freePort } from '@gatehouse/testkit/free-port';
import { afterEach, expect, test } from 'vitest';
import { createFetch, RequestFailed } from './http.ts';

const clock = createStepClock();
const servers: Server[] = [];
const sockets = new Set<Socket>();
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  for (const server of servers.splice(0)) server.close();
});

/** Starts a server that calls `answer` when a request has begun to arrive. */
async function serve(answer: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).once('data', () => answer(socket));
  });
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/bot-SECRET/x`;
}

const ask = (url: string, maxBytes = 100) => createFetch({ clock, timeoutMs: 5_000, maxBytes })(url, { method: 'POST', body: '{}' });
async function failure(asked: Promise<Response>): Promise<RequestFailed> {
  const error = await asked.catch((caught: unknown) => caught);
  if (!(error instanceof RequestFailed)) throw new Error('expected a failure', { cause: error });
  expect(error.message).not.toContain('SECRET');
  return error;
}

test('a complete answer is returned with its status, redirects are not followed', async () => {
  const url = await serve((socket) => socket.end('HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 2\r\n\r\nhi'));
  const response = await ask(url);
  expect([response.status, await response.text()]).toEqual([302, 'hi']);
});

test('nothing was sent when there was no connection', async () => {
  expect((await failure(ask(`http://127.0.0.1:${await freePort()}/bot-SECRET/x`))).maybeSent).toBe(false);
});

test('a port that no request may go to is named', async () => {
  const refused = await failure(ask('http://127.0.0.1:9/bot-SECRET/x'));
  expect([refused.message, refused.maybeSent]).toEqual(['Port 9 cannot be used: it belongs to another protocol', false]);
});

test.each([
  ['a cut before the answer', (socket: Socket) => socket.destroy()],
  ['a cut inside of the answer', (socket: Socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhi')],
  ['an answer that is too large', (socket: Socket) => socket.end(`HTTP/1.1 200 OK\r\ncontent-length: 101\r\n\r\n${'x'.repeat(101)}`)],
])('%s: it may have been sent', async (_name, answer) => {
  expect((await failure(ask(await serve(answer)))).maybeSent).toBe(true);
});

test('an answer that does not come ends at the limit: it may have been sent', async () => {
  const asked = Promise.withResolvers<void>();
  const failed = failure(ask(await serve(() => asked.resolve())));
  await asked.promise;
  clock.advance(5_000);
  expect(await failed).toMatchObject({ maybeSent: true, message: 'No complete answer within 5 s' });
});
