import { expect, test } from 'vitest';
import { createClient } from './client.ts';
import { ConflictError, ConnectionError, RateLimitError, UnavailableError } from './errors.ts';
import { answer, type SeenRequest, startGateway, streamEvents } from './testing/gateway.ts';
import type { StreamTurnOptions, TurnEvent } from './turn.ts';

const request = { message: 'Hello', sessionKey: 'ada:desk' };
const retry = { retries: 5, initialDelayMs: 1, maxDelayMs: 5 };
const result = {
  response: 'One two',
  tokensUsed: { input: 3, output: 2, total: 5 },
  finishReason: 'stop',
  sessionKey: 'ada:desk',
  conversationRef: 'cv_0000000000000000000000000000000000000000000',
  traceId: 't1',
};
const token = (id: number, delta: string) => `id: ${id}\nevent: token\ndata: ${JSON.stringify({ delta })}\n\n`;
const done = (id: number) => `id: ${id}\nevent: done\ndata: ${JSON.stringify(result)}\n\n`;

async function open(script: (seen: SeenRequest, attempt: number) => unknown) {
  let attempts = 0;
  const gateway = await startGateway({ http: (seen) => script(seen, (attempts += 1)) });
  const client = createClient({ url: gateway.url, token: 't' });
  return {
    gateway,
    client,
    keys: () => gateway.requests.map(({ headers }) => headers['idempotency-key']),
    /** Collects the events, and the error that ended the stream. */
    async stream(options: StreamTurnOptions = {}) {
      const events: TurnEvent[] = [];
      try {
        for await (const event of client.streamTurn(request, { retry, ...options })) events.push(event);
        return { events, error: undefined };
      } catch (error) {
        return { events, error };
      }
    },
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

test('a turn returns the whole answer and uses a generated key', async () => {
  await using session = await open(() => result);
  expect(await session.client.turn(request)).toEqual(result);
  await session.client.turn(request);
  expect(session.gateway.requests[0]).toMatchObject({ method: 'POST', path: '/api/chat' });
  expect(JSON.parse(session.gateway.requests[0]?.body ?? '')).toEqual(request);
  const [first, second] = session.keys();
  expect(first).toMatch(/^[0-9a-f]{32}$/);
  expect(second).not.toBe(first);
});

test('a turn with a broken connection is retried with the same key; never without a key', async () => {
  await using session = await open(({ response }, attempt) => (attempt % 3 === 0 ? result : void response.destroy()));
  expect(await session.client.turn(request, { retry })).toEqual(result);
  expect(new Set(session.keys()).size).toBe(1);
  await expect(session.client.turn(request, { retry, idempotencyKey: false })).rejects.toBeInstanceOf(ConnectionError);
  expect(session.keys().slice(3)).toEqual([undefined]);
});

test('yields deltas, then the result', async () => {
  await using session = await open(
    ({ response }) => void streamEvents(response, `: hi\n\n${token(1, 'One ')}event: ping\ndata: {}\n\n${token(2, 'two')}${done(3)}`).end(),
  );
  expect(await session.stream({ idempotencyKey: 'mine' })).toEqual({
    events: [
      { type: 'token', delta: 'One ' },
      { type: 'token', delta: 'two' },
      { type: 'done', result },
    ],
    error: undefined,
  });
  expect(session.keys()).toEqual(['mine']);
  expect(session.gateway.requests[0]).toMatchObject({ method: 'POST', path: '/api/chat/stream' });
});

test('a broken stream continues after the last delta, with the same key', async () => {
  await using session = await open(({ response }, attempt) => {
    if (attempt === 1) streamEvents(response, token(1, 'One ')).write('id: 2\nevent: tok', () => response.destroy());
    else if (attempt === 2) return answer(response, 503, { error: 'Starting.', code: 'unavailable' });
    else if (attempt === 3) streamEvents(response, '').end();
    else streamEvents(response, `event: gap\ndata: {}\n\n${token(2, 'two')}${done(3)}`);
    return undefined;
  });
  const { events, error } = await session.stream();
  expect(error).toBeUndefined();
  expect(events.map(({ type }) => type)).toEqual(['token', 'gap', 'token', 'done']);
  expect(session.gateway.requests.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, '1', '1', '1']);
  expect(new Set(session.keys()).size).toBe(1);
});

test('gives up after the last attempt with its error', async () => {
  await using session = await open(({ response }) => void streamEvents(response, '').end());
  const { error } = await session.stream({ retry: { ...retry, retries: 2 } });
  expect(error).toBeInstanceOf(ConnectionError);
  expect(String(error)).toContain('not the whole answer');
  expect(session.gateway.requests).toHaveLength(3);
});

test('without a key, a lost connection ends the turn', async () => {
  await using session = await open(({ response }) => void streamEvents(response, token(1, 'One ')).end());
  const { events, error } = await session.stream({ idempotencyKey: false });
  expect(events).toHaveLength(1);
  expect(error).toBeInstanceOf(ConnectionError);
  expect(session.keys()).toEqual([undefined]);
});

test('the failure of a turn is not retried, even if it is transient', async () => {
  const failure = JSON.stringify({ error: 'The provider does not answer.', code: 'unavailable', requestId: 'rq_1', retryAfterMs: 5 });
  await using session = await open(({ response }) => void streamEvents(response, `${token(1, 'One ')}event: error\ndata: ${failure}\n\n`).end());
  const { events, error } = await session.stream();
  expect(events).toHaveLength(1);
  expect(error).toBeInstanceOf(UnavailableError);
  expect(error).toMatchObject({ message: 'The provider does not answer.', requestId: 'rq_1', retryAfterMs: 5 });
  expect(session.gateway.requests).toHaveLength(1);
});

test.each([
  [409, { error: 'Another request had this key.', code: 'conflict' }, ConflictError, {}],
  [503, { error: 'The provider does not answer.', code: 'unavailable' }, UnavailableError, {}],
  [429, { error: 'Wait.', code: 'rate_limited' }, RateLimitError, { 'retry-after': '3600' }],
] as const)('status %i is thrown', async (status, body, kind, headers) => {
  await using session = await open(({ response }) => answer(response, status, body, headers));
  expect((await session.stream()).error).toBeInstanceOf(kind);
  await expect(session.client.turn(request, { retry })).rejects.toBeInstanceOf(kind);
  expect(session.gateway.requests).toHaveLength(2);
});

test('retries when the server says when', async () => {
  await using session = await open(({ response }, attempt) =>
    attempt % 2 === 1
      ? answer(response, 429, { error: 'Wait.', code: 'rate_limited' }, { 'retry-after': '0' })
      : response.req.url === '/api/chat'
        ? result
        : void streamEvents(response, done(1)),
  );
  expect(await session.client.turn(request)).toEqual(result);
  expect((await session.stream()).events).toEqual([{ type: 'done', result }]);
});

test.each(['event: token\ndata: {"delta":5}\n\n', 'event: done\ndata: {}\n\n', 'event: token\ndata: hello\n\n'])(
  '%j is a bad reply',
  async (text) => {
    await using session = await open(({ response }) => void streamEvents(response, text));
    expect((await session.stream()).error).toMatchObject({ code: 'bad_reply' });
    expect(session.gateway.requests).toHaveLength(1);
  },
);

test('aborting throws the reason and closes the connection, like leaving the loop', async () => {
  const closed: Promise<void>[] = [];
  await using session = await open(({ response }) => {
    closed.push(new Promise((resolve) => response.on('close', resolve)));
    streamEvents(response, token(1, 'One '));
  });
  for await (const _ of session.client.streamTurn(request)) break;
  await closed[0];
  const controller = new AbortController();
  const reading = (async () => {
    for await (const _ of session.client.streamTurn(request, { signal: controller.signal })) controller.abort(new Error('enough'));
  })();
  await expect(reading).rejects.toThrow('enough');
  await closed[1];
  expect(session.gateway.requests).toHaveLength(2);
});
