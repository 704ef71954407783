import type { RpcReply } from '@gatehouse/contract';
import { contract } from '@gatehouse/contract';
import { createStepClock } from '@gatehouse/testkit/step-clock';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { CallContext } from '../../kernel/call-context.ts';
import { silentLog } from '../../kernel/log.ts';
import { type FixtureOptions, startGateway, testTokens, wrongToken } from '../testing/gateway-fixture.ts';

type Fixture = Awaited<ReturnType<typeof startGateway>>;

interface Client {
  readonly socket: WebSocket;
  readonly opened: Promise<void>;
  readonly closed: Promise<{ code: number; reason: string }>;
  /** The next message. */
  next(): Promise<RpcReply & RpcReply[]>;
  call(method: string, params?: unknown): Promise<RpcReply>;
}

function connect(
  fixture: Fixture,
  options: { token?: string | undefined; query?: string; protocols?: string[]; headers?: Record<string, string> } = {},
): Client {
  const headers = { ...(options.token !== undefined && { authorization: `Bearer ${options.token}` }), ...options.headers };
  const socket = new WebSocket(`${fixture.address.replace('http', 'ws')}/ws${options.query ?? ''}`, options.protocols ?? [], { headers });
  const queue: unknown[] = [];
  const waiting: ((message: unknown) => void)[] = [];
  socket.on('message', (data: Buffer) => {
    const message: unknown = JSON.parse(data.toString());
    const first = waiting.shift();
    if (first === undefined) queue.push(message);
    else first(message);
  });
  socket.on('error', () => {});
  let id = 0;
  const next = (): Promise<RpcReply & RpcReply[]> =>
    new Promise((resolve) => (queue.length > 0 ? resolve(queue.shift() as never) : waiting.push(resolve as never)));
  return {
    socket,
    opened: new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject)),
    closed: new Promise((resolve) => socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() }))),
    next,
    call(method, params) {
      socket.send(JSON.stringify({ jsonrpc: '2.0', method, ...(params !== undefined && { params }), id: (id += 1) }));
      return next();
    },
  };
}

async function open(fixture: Fixture, token: string = testTokens.all): Promise<Client> {
  const client = connect(fixture, { token });
  await client.opened;
  return client;
}

const unlimited: FixtureOptions['config'] = { wsMessageRateLimit: { maxMessages: 100_000 } };
/** Many wrong secrets come from one address here. */
const many = { ...unlimited, trustedProxies: ['127.0.0.1'] };

describe('the handshake (A6, A9)', () => {
  let fixture: Fixture;
  const lines: string[] = [];
  beforeAll(async () => {
    const keep = (fields: object, message: string): void => void lines.push(JSON.stringify(fields) + message);
    fixture = await startGateway({
      config: { ...many, corsOrigins: ['https://app.example'] },
      log: { ...silentLog, error: keep, warn: keep, info: keep, debug: keep },
    });
  });
  afterAll(() => fixture[Symbol.asyncDispose]());

  it.each([
    ['the header', { token: testTokens.rpc }, ''],
    ['the query', { query: `?token=${testTokens.rpc}` }, ''],
    ['a subprotocol', { protocols: [`bearer.${testTokens.rpc}`] }, `bearer.${testTokens.rpc}`],
    ['a subprotocol along with another', { protocols: ['gatehouse', `bearer.${testTokens.rpc}`] }, 'gatehouse'],
  ])('takes the token from %s', async (_where, options, protocol) => {
    const client = connect(fixture, options);
    await client.opened;
    expect(client.socket.protocol).toBe(protocol);
    expect(await client.call('system.ping')).toMatchObject({ id: 1, result: { pong: true } });
    client.socket.close();
  });

  it.each([
    ['a wrong token', { query: `?token=${wrongToken}` }],
    ['no token', {}],
    ['a wrong header with a right query', { token: wrongToken, query: `?token=${testTokens.all}` }],
  ])('accepts and closes 4001 for %s; nothing that was sent is run', async (_what, options) => {
    const before = fixture.calls.length;
    const client = connect(fixture, { ...options, headers: { 'x-forwarded-for': '192.0.2.1' } });
    client.socket.on('open', () => {
      for (const method of Object.keys(contract)) client.socket.send(JSON.stringify({ jsonrpc: '2.0', method, id: 1 }));
    });
    expect(await client.closed).toEqual({ code: 4001, reason: 'Unauthorized' });
    expect(fixture.calls).toHaveLength(before);
    expect(lines.join()).not.toContain(wrongToken);
  });

  it.each(['api', 'mcp'] as const)('closes 4003 for a token with scope %s only', async (token) => {
    expect(await connect(fixture, { token: testTokens[token] }).closed).toEqual({ code: 4003, reason: 'Insufficient scope' });
  });

  it.each([
    ['another origin', { origin: 'https://evil.example' }],
    ['origin null', { origin: 'null' }],
    ['another host', { host: 'evil.example:4766' }],
    ['a page of another site', { 'sec-fetch-site': 'cross-site' }],
  ])('refuses %s with 403 before the token is looked at', async (_what, headers) => {
    const status = new Promise((resolve) =>
      connect(fixture, { token: testTokens.all, headers }).socket.once('unexpected-response', (_request, response) => resolve(response.statusCode)),
    );
    expect(await status).toBe(403);
  });

  it('accepts a configured origin', async () => {
    const client = connect(fixture, { token: testTokens.all, headers: { origin: 'https://app.example' } });
    await client.opened;
    expect(await client.call('system.ping')).toHaveProperty('result');
    client.socket.close();
  });

  it('guesses count against the address', async () => {
    const guess = (): Client => connect(fixture, { query: `?token=${wrongToken}`, headers: { 'x-forwarded-for': '192.0.2.77' } });
    for (let i = 0; i < 10; i++) expect((await guess().closed).code).toBe(4001);
    const status = await new Promise((resolve) => guess().socket.once('unexpected-response', (_request, response) => resolve(response.statusCode)));
    expect(status).toBe(429);
  });
});

describe('messages', () => {
  let fixture: Fixture;
  beforeAll(async () => {
    fixture = await startGateway({ config: { ...unlimited, wsMaxMessageBytes: 2_048 } });
  });
  afterAll(() => fixture[Symbol.asyncDispose]());

  it('answers batches in order, and does not answer notifications', async () => {
    const client = await open(fixture);
    client.socket.send(JSON.stringify([{ jsonrpc: '2.0', method: 'system.ping' }]));
    client.socket.send(
      JSON.stringify([
        { jsonrpc: '2.0', method: 'system.ping', id: 'a' },
        { jsonrpc: '2.0', method: 'no.such', id: 'b' },
      ]),
    );
    expect(await client.next()).toMatchObject([{ id: 'a' }, { id: 'b', error: { code: -32601 } }]);
    client.socket.close();
  });

  it('answers -32700 to a binary frame and to invalid JSON, and continues', async () => {
    const client = await open(fixture);
    client.socket.send(Buffer.from('{}'));
    expect(await client.next()).toMatchObject({ id: null, error: { code: -32700 } });
    client.socket.send('{');
    expect(await client.next()).toMatchObject({ id: null, error: { code: -32700 } });
    client.socket.send('[]');
    expect(await client.next()).toMatchObject({ id: null, error: { code: -32600 } });
    expect(await client.call('system.ping')).toHaveProperty('result');
    client.socket.close();
  });

  it('closes 1009 for a frame beyond the limit', async () => {
    const client = await open(fixture);
    client.socket.send('x'.repeat(2_049));
    expect((await client.closed).code).toBe(1009);
  });

  it('enforces the scope table (A2), with 0 calls on denial', async () => {
    const opens: Record<string, readonly string[]> = { rpc: ['rpc', 'admin', 'all', 'empty'], admin: ['admin', 'all', 'empty'] };
    for (const token of ['rpc', 'ws', 'admin', 'all', 'empty'] as const) {
      const client = await open(fixture, testTokens[token]);
      for (const [name, method] of Object.entries(contract)) {
        const before = fixture.calls.length;
        const reply = await client.call(name, method.examples[0]?.params);
        if (opens[method.scope]?.includes(token)) expect(reply).toHaveProperty('result');
        else {
          expect(reply.error).toEqual({
            code: -32603,
            message: `Insufficient scope: requires '${method.scope}'`,
            data: { code: 'insufficient_scope', required: method.scope },
          });
          expect(fixture.calls).toHaveLength(before);
        }
      }
      client.socket.close();
    }
  });
});

describe('limits of a connection', () => {
  it('answers messages beyond the sliding window with the time to wait, counting the entries of batches, and closes 1008 for abuse (B7)', async () => {
    const clock = createStepClock();
    await using fixture = await startGateway({ clock, config: { wsMessageRateLimit: { maxMessages: 4, windowMs: 1_000 } } });
    const client = await open(fixture);
    expect(await client.call('system.ping')).toHaveProperty('result');
    clock.advance(500);
    client.socket.send(JSON.stringify([1, 2, 3, 4].map((id) => ({ jsonrpc: '2.0', method: 'system.ping', id }))));
    expect(await client.next()).toMatchObject([
      { id: 1, result: {} },
      { id: 2, result: {} },
      { id: 3, result: {} },
      { id: 4, error: { code: -32000, data: { code: 'rate_limited', retryAfterMs: 500 } } },
    ]);
    clock.advance(500);
    expect(await client.call('system.ping')).toHaveProperty('result');
    expect(await client.call('system.ping')).toMatchObject({ id: 3, error: { code: -32000, data: { retryAfterMs: 500 } } });
    for (let i = 0; i < 12; i++) client.socket.send('{');
    expect(await client.closed).toEqual({ code: 1008, reason: 'Rate limit exceeded' });
  });

  it('limits concurrent calls', async () => {
    const finish = Promise.withResolvers<void>();
    await using fixture = await startGateway({
      config: { ...unlimited, wsMaxInFlight: 2 },
      handlers: { 'system.ping': async () => (await finish.promise, { pong: true as const, ts: 1 }) },
    });
    const client = await open(fixture);
    for (const id of [1, 2, 3]) client.socket.send(JSON.stringify({ jsonrpc: '2.0', method: 'system.ping', id }));
    expect(await client.next()).toMatchObject({ id: 3, error: { code: -32000, data: { retryAfterMs: 1_000 } } });
    finish.resolve();
    expect([await client.next(), await client.next()]).toMatchObject([{ id: 1 }, { id: 2 }]);
    client.socket.close();
  });

  it('aborts the calls of a socket that closes', async () => {
    const seen = Promise.withResolvers<CallContext>();
    await using fixture = await startGateway({
      handlers: {
        'system.ping': (_params, call) => {
          seen.resolve(call);
          return new Promise((resolve) => call.signal.addEventListener('abort', () => resolve({ pong: true, ts: 1 })));
        },
      },
    });
    const client = await open(fixture);
    client.socket.send(JSON.stringify({ jsonrpc: '2.0', method: 'system.ping', id: 1 }));
    const { signal, transport } = await seen.promise;
    expect([signal.aborted, transport]).toEqual([false, 'websocket']);
    client.socket.terminate();
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    await expect.poll(() => fixture.gateway.connections()).toEqual({ http: 0, websocket: 0 });
  });

  it('cancels a running call by $/cancelRequest, also when no further call may run', async () => {
    const signals: AbortSignal[] = [];
    await using fixture = await startGateway({
      config: { wsMaxInFlight: 2 },
      handlers: {
        'system.ping': (_params, { signal }) => {
          signals.push(signal);
          return new Promise((resolve) => signal.addEventListener('abort', () => resolve({ pong: true, ts: 1 })));
        },
      },
    });
    const client = await open(fixture);
    const send = (message: object) => client.socket.send(JSON.stringify({ jsonrpc: '2.0', ...message }));
    const cancel = (id: unknown) => send({ method: '$/cancelRequest', params: { id } });
    for (const id of ['slow', 2]) send({ method: 'system.ping', id });
    await expect.poll(() => signals.length).toBe(2);
    cancel('unknown');
    cancel('slow');
    expect(await client.next()).toMatchObject({ id: 'slow', result: { pong: true } });
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
    // Its call has been answered: nothing else is stopped, and as a request it is not a method.
    cancel('slow');
    send({ method: '$/cancelRequest', params: { id: 2 }, id: 3 });
    expect(await client.next()).toMatchObject({ id: 3, error: { code: -32601 } });
    expect(signals[1]?.aborted).toBe(false);
    cancel(2);
    expect(await client.next()).toMatchObject({ id: 2 });
    client.socket.close();
  });

  it('refuses a message that is valid JSON but not processed alone', async () => {
    await using fixture = await startGateway();
    const client = await open(fixture);
    client.socket.send('[{"jsonrpc":"2.0","method":"system.ping","id":1},{"jsonrpc":"2.0","method":"system.ping","params":{"__proto__":1},"id":2}]');
    expect(await client.next()).toMatchObject([
      { id: 1, result: {} },
      { id: 2, error: { code: -32600 } },
    ]);
    client.socket.close();
  });

  it('stops reading from a client that does not read, and cuts it (R16)', async () => {
    const big = 'x'.repeat(100_000);
    const clock = createStepClock();
    let calls = 0;
    await using fixture = await startGateway({
      clock,
      config: { wsMessageRateLimit: { maxMessages: 1_000_000 } },
      handlers: { 'rpc.discover': async () => ((calls += 1), { openrpc: big, info: { title: '', version: '' }, methods: [] }) },
    });
    const client = await open(fixture);
    client.socket.pause();
    const message = JSON.stringify({ jsonrpc: '2.0', method: 'rpc.discover', id: 1 });
    for (let i = 0; i < 2_000; i++) client.socket.send(message);
    await expect
      .poll(async () => {
        const before = calls;
        await new Promise((resolve) => setTimeout(resolve, 50));
        return calls > 0 && calls === before;
      })
      .toBe(true);
    // The kernel's own buffers hold some megabytes; only a fraction of the 200 MB requested was produced.
    expect(calls).toBeLessThan(400);
    for (let i = 0; i < 2; i++) clock.leap(10_000);
    await expect.poll(() => fixture.gateway.connections().websocket).toBe(0);
    client.socket.terminate();
  });

  it('sends a reading client every one of many large replies', async () => {
    const big = 'x'.repeat(100_000);
    await using fixture = await startGateway({
      config: { ...unlimited, wsMaxInFlight: 10_000 },
      handlers: { 'rpc.discover': async () => ({ openrpc: big, info: { title: '', version: '' }, methods: [] }) },
    });
    const client = await open(fixture);
    for (let id = 0; id < 300; id++) client.socket.send(JSON.stringify({ jsonrpc: '2.0', method: 'rpc.discover', id }));
    const ids = new Set<unknown>();
    for (let i = 0; i < 300; i++) ids.add((await client.next()).id);
    expect(ids.size).toBe(300);
    client.socket.close();
  });

  it('pings, and cuts a peer that does not answer', async () => {
    const clock = createStepClock();
    await using fixture = await startGateway({ clock });
    const lively = await open(fixture);
    const pinged = new Promise((resolve) => lively.socket.once('ping', resolve));
    const dead = new WebSocket(`${fixture.address.replace('http', 'ws')}/ws?token=${testTokens.all}`, { autoPong: false });
    const cut = new Promise((resolve) => dead.once('close', resolve));
    await new Promise((resolve) => dead.once('open', resolve));
    clock.leap(30_000);
    await pinged;
    // The pong is in flight: an answered call shows that it arrived before.
    await lively.call('system.ping');
    clock.leap(30_000);
    expect(await cut).toBe(1006);
    expect(await lively.call('system.ping')).toHaveProperty('result');
    lively.socket.close();
  });

  it('answers a ping', async () => {
    await using fixture = await startGateway();
    const client = await open(fixture);
    const answered = new Promise((resolve) => client.socket.once('pong', (data) => resolve(data.toString())));
    client.socket.ping('abc');
    expect(await answered).toBe('abc');
    client.socket.close();
  });
});

describe('authority of an open socket (A14)', () => {
  it('ends with the token, immediately', async () => {
    await using fixture = await startGateway();
    fixture.putToken('temp', 'temp-secret-0123456789-abcdefghijklm', ['rpc']);
    const client = await open(fixture, 'temp-secret-0123456789-abcdefghijklm');
    const other = await open(fixture);
    expect(await client.call('system.ping')).toHaveProperty('result');
    fixture.tokens.remove('temp');
    expect(await client.closed).toEqual({ code: 4001, reason: 'Unauthorized' });
    expect(await other.call('system.ping')).toHaveProperty('result');
    other.socket.close();
  });

  it('answers the call that revokes its own token before it closes', async () => {
    await using fixture = await startGateway({
      handlers: {
        'tokens.revoke': async ({ id }) => {
          fixture.tokens.remove(id);
          return { id, revoked: true as const, message: '' };
        },
      },
    });
    const client = await open(fixture, testTokens.admin);
    expect(await client.call('tokens.revoke', { id: 'admin' })).toMatchObject({ result: { revoked: true } });
    expect((await client.closed).code).toBe(4001);
  });

  it('is checked at each call', async () => {
    await using fixture = await startGateway();
    const client = await open(fixture, testTokens.admin);
    expect(await client.call('tokens.list')).toHaveProperty('result');
    const narrowed = fixture.tokens.current('admin');
    fixture.tokens.current = () => (narrowed === undefined ? undefined : { ...narrowed, scopes: ['rpc'] });
    expect(await client.call('tokens.list')).toMatchObject({ error: { code: -32603, data: { required: 'admin' } } });
    fixture.tokens.current = () => undefined;
    client.socket.send(JSON.stringify({ jsonrpc: '2.0', method: 'system.ping', id: 9 }));
    expect((await client.closed).code).toBe(4001);
  });
});

it('drains with 1001: idle sockets at once, busy ones after their answer', async () => {
  const finish = Promise.withResolvers<void>();
  const started = Promise.withResolvers<void>();
  await using fixture = await startGateway({
    handlers: { 'system.ping': async () => (started.resolve(), await finish.promise, { pong: true as const, ts: 1 }) },
  });
  const idle = await open(fixture);
  const busy = await open(fixture);
  const reply = busy.call('system.ping');
  await started.promise;
  const drained = fixture.gateway.drain(5_000);
  expect((await idle.closed).code).toBe(1001);
  busy.socket.send(JSON.stringify({ jsonrpc: '2.0', method: 'system.ping', id: 2 }));
  expect(await reply).toMatchObject({ id: 2, error: { code: -32006 } });
  finish.resolve();
  expect(await busy.next()).toMatchObject({ id: 1, result: {} });
  expect((await busy.closed).code).toBe(1001);
  await drained;
});
