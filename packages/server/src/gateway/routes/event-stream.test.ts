import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdtemp, rm } from 'node:fs/promises';
import { ServerResponse } from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ActivityList, EventGap, type EventKind } from '@gatehouse/contract';
import { createStepClock, startTestServer, telemetrySql, type TestServer } from '@gatehouse/testkit';
import { EventSource } from 'eventsource';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openEvents } from '../testing/open-events.ts';

function say(server: TestServer, message: string): void {
  server.bus.emit('system:error', { source: 'test', message, timestamp: 1 });
}

function get(server: TestServer, path: string, token: string | undefined, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> {
  return fetch(server.url + path, { method, headers: { ...(token !== undefined && { authorization: `Bearer ${token}` }), ...headers } });
}

async function listOf(server: TestServer, query: string, token = server.token): Promise<ActivityList> {
  return ActivityList().parse(await (await get(server, `/api/activity${query}`, token)).json());
}

async function openStreams(server: TestServer): Promise<number> {
  const text = await (await get(server, '/metrics', server.token)).text();
  return Number(/^gatehouse_event_streams\S* (\d+)$/m.exec(text)?.[1] ?? Number.NaN);
}

const texts = (frames: readonly { readonly data: unknown }[]): unknown[] =>
  frames.map(({ data }) => (typeof data === 'object' && data !== null && 'message' in data ? data.message : data));

describe('GET /api/events', () => {
  let server: TestServer;
  beforeAll(async () => void (server = await startTestServer()));
  afterAll(() => server[Symbol.asyncDispose]());

  it('starts with retry and the id to continue after, then sends each event with its id, kind and payload', async () => {
    using stream = await openEvents(server.url, server.token);
    expect(Object.fromEntries(stream.response.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-request-id': expect.stringMatching(/^req_/),
      'ratelimit-limit': expect.any(String),
    });
    await expect.poll(() => stream.retryMs).toBe(3000);
    const before = Number(stream.lastEventId);
    expect(stream.text.startsWith('retry: 3000\n')).toBe(true);
    say(server, 'one');
    say(server, 'two');
    await expect.poll(() => stream.frames).toHaveLength(2);
    expect(stream.frames).toEqual([
      { id: String(before + 1), event: 'system:error', data: { source: 'test', message: 'one', timestamp: 1 } },
      { id: String(before + 2), event: 'system:error', data: { source: 'test', message: 'two', timestamp: 1 } },
    ]);
  });

  it('requires a token in the header, whatever the query says', async () => {
    expect((await get(server, '/api/events', undefined)).status).toBe(401);
    expect((await get(server, `/api/events?token=${server.token}`, undefined)).status).toBe(401);
    const both = await get(server, `/api/events?token=${server.token}`, server.token);
    expect([both.status, await both.json()]).toMatchObject([401, { code: 'unauthenticated', error: expect.stringContaining('header only') }]);
    const api = await server.as(['api']);
    const mcp = await server.as(['mcp-client']);
    for (const { token } of [api, mcp]) expect((await get(server, '/api/events', token)).status).toBe(403);
  });

  it('ignores what a reader still sends, and ends when the reader closes its side', async () => {
    const connection = net.connect({ port: Number(new URL(server.url).port), host: '127.0.0.1', allowHalfOpen: true });
    let got = '';
    let ended = false;
    connection.on('data', (bytes) => (got += String(bytes)));
    connection.on('end', () => (ended = true));
    connection.write(`GET /api/events HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${server.token}\r\n\r\n`);
    await expect.poll(() => got).toContain('retry: 3000');
    const open = await openStreams(server);
    connection.write('GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n'.repeat(100));
    say(server, 'after');
    await expect.poll(() => got).toContain('"after"');
    expect(got.match(/HTTP\/1.1/g)).toHaveLength(1);
    connection.end();
    await expect.poll(() => ended).toBe(true);
    await expect.poll(async () => await openStreams(server)).toBe(open - 1);
  });

  it('keeps its stream when the next request arrives in the same packet', async () => {
    const connection = net.connect({ port: Number(new URL(server.url).port), host: '127.0.0.1' });
    let got = '';
    connection.on('data', (bytes) => (got += String(bytes)));
    const request = `GET /api/events HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${server.token}\r\n\r\n`;
    connection.write(request + request);
    await expect.poll(() => got).toContain('retry: 3000');
    say(server, 'heard once');
    await expect.poll(() => got).toContain('"heard once"');
    expect(got.match(/HTTP\/1.1/g)).toHaveLength(1);
    connection.destroy();
  });

  it('answers HEAD with its headers, and other methods with 405', async () => {
    const head = await get(server, '/api/events', server.token, {}, 'HEAD');
    expect([head.status, head.headers.get('content-type'), await head.text()]).toEqual([200, 'text/event-stream; charset=utf-8', '']);
    const options = await get(server, '/api/events', server.token, {}, 'OPTIONS');
    expect([options.status, options.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  it.each([
    ['?kinds=message:snet', 'there is no event kind "message:snet", the nearest is "message:sent"'],
    ['?kinds=system:error,', 'there is no event kind ""'],
    ['?kind=system:error', 'kind: unknown field'],
    ['?kinds=system:error&kinds=message:sent', 'kinds: expected once'],
  ])('refuses %s by name', async (query, words) => {
    const response = await get(server, `/api/events${query}`, server.token);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ code: 'invalid_params', error: expect.stringContaining(words) });
  });

  it('sends only the requested kinds', async () => {
    using stream = await openEvents(server.url, server.token, { query: '?kinds=provider:recovered,agent:hot_added' });
    say(server, 'not this');
    server.bus.emit('provider:recovered', { provider: 'mock', timestamp: 1 });
    await expect.poll(() => stream.kinds()).toEqual(['provider:recovered']);
  });

  it('produces transient kinds while somebody reads them, without ids', async () => {
    expect(server.bus.wants('message:streaming')).toBe(false);
    const wanted = createWants(server);
    using others = await openEvents(server.url, server.token, { query: '?kinds=system:error' });
    expect(wanted('message:streaming')).toBe(0);
    const stream = await openEvents(server.url, server.token, { query: '?kinds=message:streaming,message:sent' });
    expect(wanted('message:streaming')).toBe(1);
    await server.client.call('agent.execute', { message: 'Hello' });
    await fetch(`${server.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'default', stream: true, messages: [{ role: 'user', content: 'Hello' }] }),
    }).then((response) => response.text());
    await expect.poll(() => stream.kinds()).toContain('message:streaming');
    expect(stream.frames.filter(({ event, id }) => (event === 'message:streaming') === (id !== undefined))).toEqual([]);
    stream.close();
    await expect.poll(() => wanted('message:streaming')).toBe(0);
    expect(others.frames).toEqual([]);
  });

  it.each([['abc'], ['-1'], ['1.5'], ['1'.repeat(30)]])('refuses the Last-Event-ID %s', async (id) => {
    const response = await get(server, '/api/events', server.token, { 'last-event-id': id });
    expect([response.status, await response.json()]).toMatchObject([400, { error: expect.stringContaining('Last-Event-ID') }]);
  });

  it('reports an id that it never assigned, and continues with new events', async () => {
    using stream = await openEvents(server.url, server.token, { lastEventId: '99999999999999999999' });
    await expect.poll(() => stream.kinds()).toEqual(['gap']);
    const gap = EventGap.parse(stream.frames[0]?.data);
    expect(gap).toMatchObject({ from: 0, reason: 'unknown' });
    expect(stream.lastEventId).toBe(String(gap.to));
    say(server, 'now');
    await expect.poll(() => texts(stream.frames.slice(1))).toEqual(['now']);
  });

  it('loses and repeats nothing between replay and live events, at any moment', async () => {
    using from = await openEvents(server.url, server.token, { query: '?kinds=agent:hot_removed' });
    await expect.poll(() => from.lastEventId).not.toBe('');
    const said: string[] = [];
    const streams: Awaited<ReturnType<typeof openEvents>>[] = [];
    for (let n = 0; n < 60; n += 1) {
      said.push(`s${n}`);
      say(server, `s${n}`);
      if (n % 10 === 5) streams.push(await openEvents(server.url, server.token, { query: '?kinds=system:error', lastEventId: from.lastEventId }));
    }
    for (const stream of streams) await expect.poll(() => texts(stream.frames)).toEqual(said);
    for (const stream of streams) stream.close();
  });

  it('ends immediately when its token is revoked', async () => {
    const other = await server.as(['rpc']);
    using stream = await openEvents(server.url, other.token);
    await expect.poll(() => stream.retryMs).toBe(3000);
    await server.client.call('tokens.revoke', { id: other.tokenId });
    await expect.poll(() => stream.ended).toBe(true);
    expect(stream.frames.at(-1)).toMatchObject({ event: 'error', data: { code: 'unauthenticated' } });
  });

  it('waits its turn behind other requests of a connection', async () => {
    const socket = net.connect(Number(new URL(server.url).port), '127.0.0.1');
    const request = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${server.token}\r\n\r\n`;
    socket.write(request('/v1/models') + request('/api/events?kinds=system:error'));
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    await expect.poll(() => text).toContain('retry: 3000');
    say(server, 'behind another');
    await expect.poll(() => text).toContain('"behind another"');
    expect(text.indexOf('"object":"list"')).toBeLessThan(text.indexOf('retry: 3000'));
    socket.destroy();
  });

  it('is readable by a standard EventSource', async () => {
    const source = new EventSource(`${server.url}/api/events`, {
      fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, authorization: `Bearer ${server.token}` } }),
    });
    const heard: unknown[] = [];
    source.addEventListener('system:error', (event) => heard.push(JSON.parse(event.data)));
    await new Promise((resolve) => source.addEventListener('open', resolve));
    say(server, 'through EventSource');
    await expect.poll(() => heard).toMatchObject([{ message: 'through EventSource' }]);
    source.close();
  });
});

/** Listeners of a kind in addition to the test server's own, which checks all payloads. */
function createWants(server: TestServer) {
  const { bus } = server;
  const open = new Map<EventKind, number>();
  const listen = bus.listen.bind(bus);
  Object.assign(bus, {
    listen(kinds: readonly EventKind[] | 'all', listener: Parameters<typeof listen>[1]) {
      const named = kinds === 'all' ? [] : kinds;
      for (const kind of named) open.set(kind, (open.get(kind) ?? 0) + 1);
      const stop = listen(kinds, listener);
      return () => {
        for (const kind of named) open.set(kind, (open.get(kind) ?? 0) - 1);
        stop();
      };
    },
  });
  return (kind: EventKind) => open.get(kind) ?? 0;
}

describe('who sees what', () => {
  it('shows owners their own, admins all, tokens of agents only those agents', async () => {
    await using server = await startTestServer({ config: { agents: { helper: { model: 'mock/mock-fast' } } } });
    const [anna, ben, boss, bound, boundBoss] = await Promise.all([
      server.as(['rpc']),
      server.as(['rpc']),
      server.as(['admin']),
      server.as(['rpc'], { agents: ['helper'] }),
      server.as(['admin'], { agents: ['helper'] }),
    ]);
    const streams = await Promise.all([anna, ben, boss, bound, boundBoss].map(({ token }) => openEvents(server.url, token)));
    const [annas, bens, bosss, bounds, boundBosss] = streams.map((stream) => () => shown(stream.frames));
    await anna.call('agent.execute', { message: 'from anna' });
    await bound.call('agent.execute', { message: 'from bound', agentId: 'helper' });
    server.bus.emit('provider:recovered', { provider: 'mock', timestamp: 1 });
    server.bus.emit('model:fallback_exhausted', { agentId: 'default', provider: 'p', model: 'm', totalAttempts: 1, timestamp: 1 });
    server.bus.emit('security:warn', { category: 'c', message: 'm', agentId: 'helper', timestamp: 1 });
    server.bus.emit('system:error', { source: 'test', message: 'the last', timestamp: 1 });
    const turn = (agent: string) =>
      ['message:received', 'observability:token_usage', 'session:created', 'message:sent'].map((kind) => `${kind} ${agent}`);
    const system = ['provider:recovered', 'model:fallback_exhausted default'];
    await expect.poll(bosss!).toEqual([...turn('default'), ...turn('helper'), ...system, 'security:warn helper', 'system:error'].toSorted());
    await expect.poll(annas!).toEqual([...turn('default'), ...system].toSorted());
    await expect.poll(bens!).toEqual(system.toSorted());
    await expect.poll(bounds!).toEqual([...turn('helper'), 'provider:recovered'].toSorted());
    await expect.poll(boundBosss!).toEqual([...turn('helper'), 'provider:recovered', 'security:warn helper'].toSorted());

    // The same rule applies to the list, and to replayed events.
    const list = await listOf(server, '?limit=100', anna.token);
    expect(shown(list.entries.map(({ event, payload }) => ({ event, data: payload })))).toEqual(
      expect.not.arrayContaining(['message:sent helper', 'system:error']),
    );
    const replayed = await openEvents(server.url, ben.token, { lastEventId: '0' });
    await expect.poll(() => shown(replayed.frames)).toEqual([...system, 'model:catalog_loaded'].toSorted());
    for (const stream of [...streams, replayed]) stream.close();
  });

  function shown(frames: readonly { readonly event: string | undefined; readonly data: unknown }[]): string[] {
    return frames
      .filter(({ event }) => event !== 'audit:event' && event !== 'message:streaming')
      .map(({ event, data }) => (typeof data === 'object' && data !== null && 'agentId' in data ? `${event} ${String(data.agentId)}` : String(event)))
      .toSorted();
  }
});

describe('GET /api/activity', () => {
  it('lists the newest events oldest first, bounded, also after a restart', async () => {
    const homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-test-'));
    const first = await startTestServer({ homeDir });
    for (let n = 0; n < 120; n += 1) say(first, `e${n}`);
    const list = await listOf(first, '');
    expect(list.count).toBe(50);
    expect(list.entries[49]).toEqual({
      id: expect.any(Number),
      event: 'system:error',
      payload: { source: 'test', message: 'e119', timestamp: 1 },
      timestamp: expect.any(Number),
    });
    expect((await listOf(first, '?limit=3')).entries.map((entry) => entry.payload['message'])).toEqual(['e117', 'e118', 'e119']);
    expect([(await listOf(first, '?limit=1000')).count, (await listOf(first, '?limit=0')).count]).toEqual([100, 1]);
    for (const query of ['?limit=ten', '?limit=-1', '?limit=', '?max=3', '?limit=1&limit=2'])
      expect((await get(first, `/api/activity${query}`, first.token)).status).toBe(400);
    await first[Symbol.asyncDispose]();
    const second = await startTestServer({ homeDir });
    const again = await listOf(second, '?limit=100');
    expect(again.entries.filter((entry) => entry.event === 'system:error').slice(-1)).toEqual(list.entries.slice(-1));
    await second[Symbol.asyncDispose]();
    await rm(homeDir, { recursive: true, force: true });
  });
});

describe('a stop', () => {
  it('says goodbye last, and missed events arrive after a restart, in order and once', async () => {
    const homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-test-'));
    const first = await startTestServer({ homeDir });
    const stream = await openEvents(first.url, first.token, { query: '?kinds=system:error' });
    say(first, 'seen');
    await expect.poll(() => texts(stream.frames)).toEqual(['seen']);
    const stopped = first.server.drain();
    await expect.poll(() => stream.ended).toBe(true);
    expect(stream.frames.at(-1)).toMatchObject({ event: 'bye', data: { reason: 'shutdown' } });
    await stopped;
    say(first, 'missed');
    await first[Symbol.asyncDispose]();
    const second = await startTestServer({ homeDir });
    say(second, 'new');
    using again = await openEvents(second.url, second.token, { query: '?kinds=system:error', lastEventId: stream.lastEventId });
    await expect.poll(() => texts(again.frames)).toEqual(['missed', 'new']);
    expect(Number(again.frames[1]?.id)).toBeGreaterThan(Number(again.frames[0]?.id));
    again.close();
    await second[Symbol.asyncDispose]();
    await rm(homeDir, { recursive: true, force: true });
  });

  it('sends nothing after the goodbye', async () => {
    await using server = await startTestServer();
    using stream = await openEvents(server.url, server.token, { query: '?kinds=system:error' });
    const drained = server.server.drain();
    say(server, 'too late');
    await drained;
    await expect.poll(() => stream.ended).toBe(true);
    // A machine under load says so before.
    expect(stream.kinds().at(-1)).toBe('bye');
  });

  it('delays the goodbye until running work has finished', async () => {
    const answered = Promise.withResolvers<void>();
    await using server = await startTestServer({ provider: { answer: () => ({ text: 'late', after: answered.promise }) } });
    const stream = await openEvents(server.url, server.token, { query: '?kinds=message:sent' });
    const running = server.client.call('agent.execute', { message: 'slow' });
    await expect.poll(() => server.provider.requests.length).toBe(1);
    const stopped = server.server.drain();
    answered.resolve();
    await running;
    await expect.poll(() => stream.kinds()).toEqual(['message:sent', 'bye']);
    await stopped;
  });
});

describe('limits', () => {
  it('lets one token hold half of the streams, and all tokens together no more than the limit', async () => {
    await using server = await startTestServer({ config: { gateway: { maxEventStreams: 4 } } });
    const [a, b, c] = await Promise.all([server.as(['rpc']), server.as(['rpc']), server.as(['rpc'])]);
    const streams = await Promise.all([a, a, b, b].map(({ token }) => openEvents(server.url, token)));
    const third = await get(server, '/api/events', a.token);
    expect([third.status, third.headers.get('retry-after'), await third.json()]).toMatchObject([429, '5', { code: 'rate_limited' }]);
    const full = await get(server, '/api/events', c.token);
    expect([full.status, full.headers.get('retry-after'), await full.json()]).toMatchObject([503, '5', { code: 'unavailable' }]);
    streams[0]?.close();
    await expect.poll(async () => (await get(server, '/api/events', c.token, {}, 'GET')).status).toBe(200);
    for (const stream of streams) stream.close();
  });

  it('pings all readers every 15 seconds, without an id', async () => {
    const clock = createStepClock();
    await using server = await startTestServer({ clock });
    using stream = await openEvents(server.url, server.token, { query: '?kinds=agent:hot_added' });
    await expect.poll(() => stream.retryMs).toBe(3000);
    clock.advance(14_999);
    clock.advance(1);
    await expect.poll(() => stream.frames).toEqual([{ id: undefined, event: 'ping', data: { timestamp: expect.any(Number) } }]);
    clock.advance(15_000);
    await expect.poll(() => stream.frames).toHaveLength(2);
  });

  it('cuts a reader that reads nothing, without affecting others, and sends it the rest when it returns', async () => {
    const clock = createStepClock();
    await using server = await startTestServer({ clock });
    using quick = await openEvents(server.url, server.token, { query: '?kinds=system:error' });
    await expect.poll(() => quick.lastEventId).not.toBe('');
    const from = quick.lastEventId;
    const answers: ServerResponse[] = [];
    const watch = (message: unknown): void => {
      if (typeof message === 'object' && message !== null && 'response' in message && message.response instanceof ServerResponse)
        answers.push(message.response);
    };
    subscribe('http.server.request.start', watch);
    const stuck = net.connect(Number(new URL(server.url).port), '127.0.0.1');
    stuck.write(`GET /api/events?kinds=system:error HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${server.token}\r\n\r\n`);
    await new Promise((resolve) => stuck.once('readable', resolve));
    unsubscribe('http.server.request.start', watch);
    const waiting = (): number => answers[0]?.writableLength ?? 0;
    stuck.on('error', () => {});
    const large = 'x'.repeat(100_000);
    const stored = async () => Number((await telemetrySql(server.homeDir, 'SELECT sum(count) AS count FROM event_batch'))[0]?.['count']);
    for (let n = 0; n < 200; n += 1) {
      say(server, `${n} ${large}`);
      await expect.poll(() => quick.frames.length, { interval: 1 }).toBe(n + 1);
      // As fast as the database accepts it: sustained higher rates cause a gap.
      await expect.poll(stored, { interval: 5 }).toBeGreaterThan(n - 10);
    }
    // 20 MB were sent; the backlog of the stuck reader is bounded, and it has its time.
    expect(waiting()).toBeGreaterThan(64_000);
    expect(waiting()).toBeLessThan(400_000);
    clock.advance(9_000);
    expect(answers[0]?.destroyed).toBe(false);
    clock.advance(3_000);
    expect(answers[0]?.destroyed).toBe(true);
    expect(quick.ended).toBe(false);
    stuck.destroy();
    using back = await openEvents(server.url, server.token, { query: '?kinds=system:error', lastEventId: from });
    await expect.poll(() => back.frames.map(({ id }) => id)).toEqual(quick.frames.filter(({ event }) => event !== 'ping').map(({ id }) => id));
  });

  it('lets a reader that was behind continue where it was', async () => {
    await using server = await startTestServer();
    const stored = async () => Number((await telemetrySql(server.homeDir, 'SELECT sum(count) AS count FROM event_batch'))[0]?.['count']);
    const slow = net.connect(Number(new URL(server.url).port), '127.0.0.1');
    slow.write(`GET /api/events?kinds=system:error HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${server.token}\r\n\r\n`);
    await new Promise((resolve) => slow.once('readable', resolve));
    const large = 'x'.repeat(100_000);
    for (let n = 0; n < 150; n += 1) {
      say(server, `<${n}> ${large}`);
      // As fast as the database accepts it: sustained higher rates cause a gap.
      await expect.poll(stored, { interval: 5 }).toBeGreaterThan(n - 10);
    }
    let text = '';
    slow.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    await expect.poll(() => text.includes('<149>'), { timeout: 20_000 }).toBe(true);
    expect([...text.matchAll(/"<(\d+)>/g)].map(([, n]) => Number(n))).toEqual(Array.from({ length: 150 }, (_, n) => n));
    slow.destroy();
  });
});
