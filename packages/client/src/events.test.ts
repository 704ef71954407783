import { expect, test } from 'vitest';
import { createClient } from './client.ts';
import { InvalidParamsError, PermissionError } from './errors.ts';
import type { EventsOptions, GapEvent, ServerEvent } from './events.ts';
import { answer, type SeenRequest, startGateway, streamEvents } from './testing/gateway.ts';

const quick = { initialDelayMs: 1, maxDelayMs: 5 };

async function open(script: (seen: SeenRequest, attempt: number) => unknown) {
  let attempts = 0;
  const gateway = await startGateway({ http: (seen) => script(seen, (attempts += 1)) });
  const client = createClient({ url: gateway.url, token: 't' });
  return {
    gateway,
    /** Reads `count` events. */
    async take(count: number, options: EventsOptions = {}) {
      const taken: (ServerEvent | GapEvent)[] = [];
      if (count === 0) return taken;
      for await (const event of client.events({ ...quick, ...options })) if (taken.push(event) === count) break;
      return taken;
    },
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

const added = (id: number, agentId: string) =>
  `event: agent:hot_added\nid: ${id}\ndata: ${JSON.stringify({ agentId, timestamp: 1_790_000_000_000 + id })}\n\n`;

test('events have kind, id and payload; ping, bye and comments are not passed on', async () => {
  await using session = await open(
    ({ response }) =>
      void streamEvents(
        response,
        `retry: 1\n\n: hi\n\nevent: ping\ndata: {}\n\n${added(4, 'scout')}event: bye\ndata: {}\n\nevent: gap\nid: 9\ndata: {"missed":3}\n\n`,
      ),
  );
  const [first, second] = await session.take(2, { kinds: ['agent:hot_added', 'agent:hot_removed'] });
  expect(first).toEqual({ kind: 'agent:hot_added', id: '4', payload: { agentId: 'scout', timestamp: 1_790_000_000_004 } });
  expect(second).toEqual({ kind: 'gap', id: '9', payload: { missed: 3 } });
  const [request] = session.gateway.requests;
  expect(request).toMatchObject({ method: 'GET', path: '/api/events?kinds=agent%3Ahot_added%2Cagent%3Ahot_removed' });
  expect(request?.headers).toMatchObject({ authorization: 'Bearer t', accept: 'text/event-stream' });
  expect(request?.headers['last-event-id']).toBeUndefined();
});

test('a lost connection resumes after the last event, however it was lost', async () => {
  await using session = await open(({ response }, attempt) => {
    if (attempt === 1) streamEvents(response, added(1, 'a')).end();
    else if (attempt === 2) streamEvents(response, added(2, 'b')).write('event: agent:hot_', () => response.destroy());
    else if (attempt === 3) return answer(response, 503, { error: 'Draining.', code: 'unavailable' }, { 'retry-after': '0' });
    else if (attempt === 4) return answer(response, 500, { error: 'A fault.', code: 'internal' });
    else streamEvents(response, added(3, 'c'));
    return undefined;
  });
  const states: string[] = [];
  const taken = await session.take(3, {
    lastEventId: '0',
    onState: (state, error) => states.push(error === undefined ? state : `${state} ${error.code}`),
  });
  expect(taken.map(({ id }) => id)).toEqual(['1', '2', '3']);
  expect(session.gateway.requests.map(({ headers }) => headers['last-event-id'])).toEqual(['0', '1', '2', '2', '2']);
  expect(states).toEqual([
    'connecting',
    'open',
    'waiting connection_failed',
    'connecting',
    'open',
    'waiting connection_failed',
    'connecting',
    'waiting unavailable',
    'connecting',
    'waiting internal',
    'connecting',
    'open',
  ]);
});

test('a silent connection is replaced', async () => {
  const closed: Promise<void>[] = [];
  await using session = await open(({ response }, attempt) => {
    closed.push(new Promise((resolve) => response.on('close', resolve)));
    streamEvents(response, added(attempt, 'a'));
  });
  const taken = await session.take(2, { idleTimeoutMs: 20 });
  expect(taken.map(({ id }) => id)).toEqual(['1', '2']);
  await Promise.all(closed);
});

test('the pause follows the server, and is at least Retry-After', async () => {
  const times: number[] = [];
  await using session = await open(({ response }, attempt) => {
    times.push(performance.now());
    if (attempt === 1) return answer(response, 429, { error: 'Too many streams.', code: 'rate_limited' }, { 'retry-after': '0.2' });
    if (attempt === 2) streamEvents(response, 'retry: 0\n\n').end();
    else streamEvents(response, added(1, 'a'));
    return undefined;
  });
  // The client's first pause would be up to an hour: only the server's `retry` makes this end.
  await session.take(1, { initialDelayMs: 1, maxDelayMs: 3_600_000 });
  expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(195);
});

test.each([
  [403, { error: "Insufficient scope: requires 'rpc'", code: 'insufficient_scope' }, PermissionError],
  [400, { error: 'kinds: there is no event nonsense.', code: 'invalid_params' }, InvalidParamsError],
])('status %i ends the stream', async (status, body, kind) => {
  await using session = await open(({ response }) => answer(response, status, body));
  await expect(session.take(1)).rejects.toBeInstanceOf(kind);
  expect(session.gateway.requests).toHaveLength(1);
});

test('a response that is not an event stream, or not JSON, ends the stream', async () => {
  await using page = await open(() => ({ hello: 'I am something else' }));
  await expect(page.take(1)).rejects.toMatchObject({ code: 'bad_reply' });
  await using text = await open(({ response }) => void streamEvents(response, 'data: hello\n\n'));
  await expect(text.take(1)).rejects.toMatchObject({ code: 'bad_reply' });
});

test('the signal ends the stream while reading, while waiting, and before it starts', async () => {
  const closed: Promise<void>[] = [];
  await using session = await open(({ response }) => {
    closed.push(new Promise((resolve) => response.on('close', resolve)));
    streamEvents(response, added(1, 'a'));
  });
  const reading = new AbortController();
  const reads = session.take(2, { signal: reading.signal });
  await expect.poll(() => session.gateway.requests.length).toBe(1);
  reading.abort(new Error('enough'));
  await expect(reads).rejects.toThrow('enough');
  await Promise.all(closed);

  await using busy = await open(({ response }) => answer(response, 503, {}));
  const waiting = new AbortController();
  const waits = busy.take(1, {
    signal: waiting.signal,
    initialDelayMs: 3_600_000,
    maxDelayMs: 3_600_000,
    onState: (state) => void (state === 'waiting' && waiting.abort(new Error('enough'))),
  });
  await expect(waits).rejects.toThrow('enough');

  await expect(session.take(1, { signal: AbortSignal.abort(new Error('never')) })).rejects.toThrow('never');
  expect(session.gateway.requests).toHaveLength(1);
});
