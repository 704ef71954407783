import { expect, test } from 'vitest';
import type { WebSocket as ServerSocket } from 'ws';
import { AuthenticationError, ConnectionError, PermissionError, TimeoutError } from './errors.ts';
import { createSocket, type SocketState } from './socket.ts';
import { type GatewayScript, startGateway } from './testing/gateway.ts';

const token = 'a-token-of-more-than-thirty-two-characters';

async function open(script: NonNullable<GatewayScript['socket']>, useToken = token) {
  const gateway = await startGateway({ socket: script });
  const states: SocketState[] = [];
  const socket = createSocket({ url: gateway.url, token: useToken, initialDelayMs: 1, maxDelayMs: 5, onState: (state) => states.push(state) });
  return {
    gateway,
    socket,
    states,
    async [Symbol.asyncDispose]() {
      socket.close();
      await gateway[Symbol.asyncDispose]();
    },
  };
}

function answerAll(socket: ServerSocket): void {
  socket.on('message', (data: Buffer) => {
    const { id, method } = JSON.parse(data.toString());
    socket.send(
      JSON.stringify(
        method === 'system.ping'
          ? { jsonrpc: '2.0', id, result: { pong: true, ts: id } }
          : { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found', data: { code: 'method_not_found' } } },
      ),
    );
  });
}

test('calls are matched by id, and the token goes as a subprotocol', async () => {
  const protocols: string[] = [];
  const held: string[] = [];
  await using session = await open(({ socket, protocol }) => {
    protocols.push(protocol);
    socket.on('message', (data: Buffer) => {
      held.push(data.toString());
      // Answers in reverse order.
      if (held.length === 2)
        for (const text of held.toReversed())
          socket.send(JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(text).id, result: { pong: true, ts: JSON.parse(text).id * 100 } }));
    });
  });
  const [first, second] = await Promise.all([session.socket.call('system.ping'), session.socket.call('system.ping')]);
  expect([first.ts, second.ts]).toEqual([100, 200]);
  expect(protocols).toEqual([`gatehouse, bearer.${token}`]);
  expect(session.socket.state).toBe('open');
});

test("a token that a subprotocol can't carry goes into the query", async () => {
  const urls: string[] = [];
  await using session = await open(({ socket, url }) => {
    urls.push(url);
    answerAll(socket);
  }, 'a/token=with spaces');
  await session.socket.call('system.ping');
  expect(new URL(urls[0] ?? '', 'http://x').searchParams.get('token')).toBe('a/token=with spaces');
});

test('an error reply rejects its own call only', async () => {
  await using session = await open(({ socket }) => answerAll(socket));
  await expect(session.socket.call('agents.list')).rejects.toMatchObject({ code: 'method_not_found' });
  expect((await session.socket.call('system.ping')).pong).toBe(true);
});

test('a lost connection rejects a call that may have had side effects, and reconnects', async () => {
  await using session = await open(({ socket, attempt }) => {
    if (attempt === 1) socket.on('message', () => socket.close(1001, 'shutting down'));
    else answerAll(socket);
  });
  const error = await session.socket.call('agents.delete', { agentId: 'scout' }).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(ConnectionError);
  expect(String(error)).toMatch(/1001.*shutting down.*may or may not/);
  expect((await session.socket.call('system.ping')).pong).toBe(true);
  expect(session.states).toEqual(['connecting', 'open', 'waiting', 'connecting', 'open']);
});

test('a lost read is sent again over the next connection, at most twice', async () => {
  const asked: string[] = [];
  await using session = await open(({ socket, attempt }) => {
    socket.on('message', (data: Buffer) => asked.push(JSON.parse(data.toString()).method));
    if (attempt === 2) answerAll(socket);
    else socket.on('message', () => socket.terminate());
  });
  expect((await session.socket.call('system.ping')).pong).toBe(true);
  expect(asked).toEqual(['system.ping', 'system.ping']);

  await using dead = await open(({ socket }) => socket.on('message', () => socket.terminate()));
  await expect(dead.socket.call('system.ping')).rejects.toBeInstanceOf(ConnectionError);
  expect(dead.gateway.connections).toBe(3);
});

test('without reconnection, the first loss closes the socket', async () => {
  const gateway = await startGateway({ socket: ({ socket }) => socket.on('message', () => socket.close(1001)) });
  const states: unknown[] = [];
  using socket = createSocket({ url: gateway.url, token, reconnect: false, onState: (state, error) => states.push(state, error?.code) });
  await expect(socket.call('system.ping')).rejects.toBeInstanceOf(ConnectionError);
  await expect(socket.call('system.ping')).rejects.toBeInstanceOf(ConnectionError);
  expect(states).toEqual(['connecting', undefined, 'open', undefined, 'closed', 'connection_failed']);
  expect(gateway.connections).toBe(1);
  await gateway[Symbol.asyncDispose]();
});

test.each([
  [4001, AuthenticationError],
  [4003, PermissionError],
  [4008, PermissionError],
])('close code %i is final', async (code, kind) => {
  await using session = await open(({ socket }) => socket.close(code, 'no'));
  await expect(session.socket.call('system.ping')).rejects.toBeInstanceOf(kind);
  expect(session.socket.state).toBe('closed');
  await expect(session.socket.call('system.ping')).rejects.toBeInstanceOf(kind);
  expect(session.gateway.connections).toBe(1);
});

test('an unreachable server rejects calls instead of queueing them', async () => {
  const gateway = await startGateway({});
  await gateway[Symbol.asyncDispose]();
  using socket = createSocket({ url: gateway.url, token, initialDelayMs: 1000 });
  await expect(socket.call('system.ping')).rejects.toThrow(`Cannot open a socket to ${gateway.url}`);
  expect(socket.state).toBe('waiting');
});

test('closing rejects pending calls and is final', async () => {
  await using session = await open(() => undefined);
  const call = session.socket.call('system.ping');
  session.socket.close();
  await expect(call).rejects.toThrow('closed here');
  await expect(session.socket.call('system.ping')).rejects.toThrow('closed here');
  expect(session.states.at(-1)).toBe('closed');
});

test('deadline and signal end one call; the connection stays open', async () => {
  await using session = await open(({ socket }) =>
    socket.on('message', (data: Buffer) => {
      const { id, method } = JSON.parse(data.toString());
      if (method === 'system.ping') socket.send(JSON.stringify({ jsonrpc: '2.0', id, result: { pong: true, ts: 1 } }));
    }),
  );
  await expect(session.socket.call('agents.list', {}, { timeoutMs: 20 })).rejects.toBeInstanceOf(TimeoutError);
  await expect(session.socket.call('agents.list', {}, { signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough');
  expect((await session.socket.call('system.ping')).pong).toBe(true);
  expect(session.gateway.connections).toBe(1);
});
