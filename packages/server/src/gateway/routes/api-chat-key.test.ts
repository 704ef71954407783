import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiChatResult } from '@gatehouse/contract';
import { copyHome, createStepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import * as z from 'zod';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Tool } from '../../runtime/tool.ts';
import { allEvents, eventsOf, postApi, textOf, type StreamEvent } from '../testing/api-client.ts';

const clock = createStepClock();
let server: TestServer;
let keys = 0;
beforeAll(async () => {
  // An answer longer than the part of a running turn that is kept.
  server = await startTestServer({ clock, config: { agents: { default: { model: 'mock/mock-fast', maxTokens: 100_000 } } } });
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(() => server.provider.setAnswer(undefined));

const newKey = (): string => `key-${++keys}`;
type Headers = Readonly<Record<string, string>>;
/** Each key has a separate conversation, so that no test waits for the turn of another. */
const send =
  (path: string) =>
  (key: string, body: object, headers: Headers = {}) =>
    postApi(server, path, { sessionKey: { userId: 'keys', channelId: key }, ...body }, { 'idempotency-key': key, ...headers });
const asked = send('/api/chat');
const streamed = send('/api/chat/stream');

async function readTokens(response: Response, count: number): Promise<StreamEvent[]> {
  const events: StreamEvent[] = [];
  for await (const event of eventsOf(response)) {
    events.push(event);
    if (events.length === count) break;
  }
  return events;
}

describe('a key that was used', () => {
  it('returns the first answer without another turn, in the format of the requested route', async () => {
    const key = newKey();
    const body = { message: 'Hello', sessionKey: `${key}:a`, agentId: 'default' };
    const before = server.provider.served();
    const first = ApiChatResult().parse(await (await asked(key, body)).json());
    expect(await (await asked(key, { agentId: 'default', sessionKey: `${key}:a`, message: 'Hello' })).json()).toEqual(first);
    const events = await allEvents(await streamed(key, body));
    expect(events).toEqual([
      { event: 'token', id: '1', data: { delta: first.response } },
      { event: 'done', data: first },
    ]);
    expect(await allEvents(await streamed(key, body, { 'last-event-id': '2' }))).toEqual([
      { event: 'gap', data: { resumesAt: null } },
      { event: 'done', data: first },
    ]);
    expect(server.provider.served()).toBe(before + 1);
    expect(await server.client.call('session.history', { sessionKey: `${key}:a` })).toMatchObject({ total: 2 });
  });

  it('is a conflict with another body, on either route, while it runs and later', async () => {
    const key = newKey();
    server.provider.queue({ text: ['a', 'b'], breakAfter: { deltas: 1, by: 'stall' } });
    const running = eventsOf(await streamed(key, { message: 'Hello' }));
    await running.next();
    for (const response of [await asked(key, { message: 'Hello!' }), await streamed(key, { message: 'Hello', locale: 'de' })])
      expect([response.status, await response.json()]).toEqual([409, expect.objectContaining({ code: 'conflict' })]);
    await running.return();
    const later = newKey();
    await (await asked(later, { message: 'One' })).text();
    for (const response of [await asked(later, { message: 'Two' }), await streamed(later, { message: 'Two' })])
      expect([response.status, await response.json()]).toEqual([409, expect.objectContaining({ code: 'conflict' })]);
  });

  it('belongs to one principal', async () => {
    const other = await server.as(['rpc']);
    const key = newKey();
    const first = ApiChatResult().parse(await (await asked(key, { message: 'Mine' })).json());
    const theirs = await asked(key, { message: 'Theirs' }, { authorization: `Bearer ${other.token}` });
    expect(theirs.status).toBe(200);
    expect(ApiChatResult().parse(await theirs.json()).traceId).not.toBe(first.traceId);
  });

  it('returns the first failure too', async () => {
    await using failing = await startTestServer({ provider: { answer: () => ({ status: 401, error: { message: 'bad key' } }) } });
    const replies = [];
    for (let i = 0; i < 2; i++) {
      const response = await postApi(failing, '/api/chat', { message: 'Hello' }, { 'idempotency-key': 'k' });
      replies.push([response.status, (await response.json()) as object]);
    }
    expect(replies).toEqual([
      [500, expect.objectContaining({ code: 'internal' })],
      [500, expect.objectContaining({ code: 'internal' })],
    ]);
    expect(failing.provider.served()).toBe(1);
  });

  it('runs the turn again after a response that asks for a retry', async () => {
    const stepped = createStepClock();
    await using busy = await startTestServer({ clock: stepped });
    busy.provider.queue({ status: 429, headers: { 'retry-after': '7' }, error: { message: 'slow down' } });
    const ask = () => postApi(busy, '/api/chat', { message: 'Hello' }, { 'idempotency-key': 'k' });
    const refused = await ask();
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '7']);
    stepped.advance(7_000);
    expect((await ask()).status).toBe(200);
  });

  it('is a different key for a token that was narrowed since', async () => {
    const wide = await server.as(['rpc']);
    const key = newKey();
    const ask = (token: string) => asked(key, { message: 'Hello' }, { authorization: `Bearer ${token}` });
    expect((await ask(wide.token)).status).toBe(200);
    await server.client.call('tokens.revoke', { id: wide.tokenId });
    const narrow = await server.client.call('tokens.create', { id: wide.tokenId, scopes: ['rpc'], agents: ['another'] });
    expect((await ask(narrow.secret)).status).toBe(409);
  });

  it('is not consumed by a request without a turn', async () => {
    const key = newKey();
    expect((await asked(key, { message: 'Hello', agentId: 'nobody' })).status).toBe(404);
    expect((await asked(key, { message: 'Hello' })).status).toBe(200);
  });

  it('returns no answer of a deleted conversation, and runs no turn again', async () => {
    const [key, kept] = [newKey(), newKey()];
    const { conversationRef } = ApiChatResult().parse(await (await asked(key, { message: 'Hello' })).json());
    const other = ApiChatResult().parse(await (await asked(kept, { message: 'Hello' })).json());
    await server.client.call('session.delete', { conversationRef });
    const before = server.provider.served();
    for (const response of [await asked(key, { message: 'Hello' }), await streamed(key, { message: 'Hello' })])
      expect([response.status, await response.json()]).toEqual([409, expect.objectContaining({ error: expect.stringContaining('was deleted') })]);
    expect(await (await asked(kept, { message: 'Hello' })).json()).toEqual(other);
    expect(server.provider.served()).toBe(before);
  });

  it('is free again after 24 hours', async () => {
    const key = newKey();
    await (await asked(key, { message: 'One' })).text();
    clock.advance(24 * 3_600_000 - 1_000);
    expect((await asked(key, { message: 'Two' })).status).toBe(409);
    clock.advance(1_000);
    expect((await asked(key, { message: 'Two' })).status).toBe(200);
  });

  it.each(['', ' ', 'a b', 'é', 'x'.repeat(256)])('is refused when it is %j', async (key) => {
    const response = await asked(key, { message: 'Hello' });
    expect([response.status, await response.json()]).toEqual([400, expect.objectContaining({ error: expect.stringContaining('Idempotency-Key') })]);
  });
});

describe('a running turn under a key', () => {
  it('is one turn for all concurrent requests', async () => {
    const key = newKey();
    const before = server.provider.served();
    const body = { message: 'Hello', sessionKey: `${key}:a` };
    const replies = await Promise.all([asked(key, body), asked(key, body), streamed(key, body), asked(key, { ...body, message: 'Other' })]);
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 409]);
    const [first, second, stream] = replies;
    const result = ApiChatResult().parse(await first.json());
    expect(await second.json()).toEqual(result);
    const events = await allEvents(stream);
    expect([textOf(events), events.at(-1)]).toEqual([result.response, { event: 'done', data: result }]);
    expect(server.provider.served()).toBe(before + 1);
  });

  it('continues after Last-Event-ID without loss or repeat', async () => {
    const key = newKey();
    const text = Array.from({ length: 12 }, (_, i) => `piece ${i} `);
    server.provider.queue({ text, paceMs: 15 });
    const first = await readTokens(await streamed(key, { message: 'Hello' }), 3);
    expect(first.map(({ id }) => id)).toEqual(['1', '2', '3']);
    const rest = await allEvents(await streamed(key, { message: 'Hello' }, { 'last-event-id': '3' }));
    expect(rest.map(({ event, id }) => id ?? event)).toEqual([...Array.from({ length: 9 }, (_, i) => String(i + 4)), 'done']);
    expect(textOf([...first, ...rest])).toBe(text.join(''));
  });

  it('reports a gap where the streamed text is no longer kept, and sends the rest', async () => {
    const key = newKey();
    const pieces = Array.from({ length: 15 }, (_, i) => String.fromCharCode(97 + i).repeat(100_000));
    server.provider.queue({ text: [...pieces, 'end', 'never'], breakAfter: { deltas: 16, by: 'stall' } });
    const body = { message: 'Hello' };
    for await (const { data } of eventsOf(await streamed(key, body))) if (data['delta'] === 'end') break;
    const late = eventsOf(await streamed(key, body, { 'last-event-id': '2' }));
    const gap = (await late.next()).value;
    expect(gap).toMatchObject({ event: 'gap', data: { resumesAt: expect.any(Number) } });
    const resumesAt = Number((gap as StreamEvent).data['resumesAt']);
    expect(resumesAt).toBeGreaterThan(3);
    const ids: string[] = [];
    for await (const { id } of late) {
      ids.push(id ?? '');
      if (id === '16') break;
    }
    expect(ids).toEqual(Array.from({ length: 17 - resumesAt }, (_, i) => String(resumesAt + i)));
    expect(ids.length).toBeGreaterThan(5);
  });

  it('continues without its reader for a while, then is aborted and frees the key', async () => {
    const key = newKey();
    const heard = server.heard('message:sent');
    const ends = () => heard.filter(({ sessionKey }) => sessionKey === `keys:${key}`).map(({ finishReason }) => finishReason);
    server.provider.queue({ text: ['a', 'b'], breakAfter: { deltas: 1, by: 'stall' } });
    await readTokens(await streamed(key, { message: 'Hello' }), 1);
    const back = eventsOf(await streamed(key, { message: 'Hello' }));
    expect((await back.next()).value).toMatchObject({ event: 'token', id: '1' });
    clock.advance(10_000);
    expect(ends()).toEqual([]);
    await back.return();
    await expect
      .poll(() => {
        clock.advance(2_000);
        return ends();
      })
      .toEqual(['aborted']);
    const again = await asked(key, { message: 'Hello' });
    expect([again.status, ApiChatResult().parse(await again.json()).finishReason]).toEqual([200, 'stop']);
  });

  it('cannot be continued without its key', async () => {
    const response = await postApi(server, '/api/chat/stream', { message: 'Hello' }, { 'last-event-id': '3' });
    expect([response.status, await response.json()]).toEqual([400, expect.objectContaining({ error: expect.stringContaining('Last-Event-ID') })]);
    expect((await streamed(newKey(), { message: 'Hello' }, { 'last-event-id': 'x' })).status).toBe(400);
  });
});

describe('a server that goes down while a turn runs', () => {
  const homes: string[] = [];
  afterAll(() => Promise.all(homes.map((home) => rm(home, { recursive: true, force: true }))));
  let ran = 0;
  let hold: (() => Promise<void>) | undefined;
  const charge: Tool = {
    name: 'charge',
    description: 'Charges the card.',
    args: z.strictObject({}),
    risk: 'read',
    effect: 'once',
    timeoutMs: 60_000,
    async run() {
      ran += 1;
      await hold?.();
      return { content: 'charged' };
    },
  };
  const options = { tools: [charge], config: { agents: { default: { model: 'mock/mock-fast', tools: { allow: ['charge'] } } } } };
  const body = { message: 'Charge it' };
  const headers = { 'idempotency-key': 'charge-1' };

  it('does not repeat what must be done once: the outcome is unknown', async () => {
    await using dying = await startTestServer(options);
    const copy = await mkdtemp(join(tmpdir(), 'gatehouse-copy-'));
    homes.push(copy);
    dying.provider.queue({ toolCalls: [{ id: 'c1', name: 'charge', arguments: '{}' }] }, { text: 'done' });
    // The home as a crash would leave it during the tool call.
    hold = () => copyHome(dying.homeDir, copy);
    const first = ApiChatResult().parse(await (await postApi(dying, '/api/chat', body, headers)).json());
    expect([first.response, ran]).toEqual(['done', 1]);
    expect(await (await postApi(dying, '/api/chat', body, headers)).json()).toEqual(first);

    await using restarted = await startTestServer({ ...options, homeDir: copy });
    for (const path of ['/api/chat', '/api/chat/stream']) {
      const response = await postApi(restarted, path, body, headers);
      expect([response.status, await response.json()]).toEqual([
        409,
        expect.objectContaining({ code: 'conflict', error: expect.stringContaining('unknown') }),
      ]);
    }
    expect([ran, restarted.provider.served()]).toEqual([1, 0]);
  });

  it('returns the earlier answer after a restart', async () => {
    const home = await mkdtemp(join(tmpdir(), 'gatehouse-kept-'));
    homes.push(home);
    let first: unknown;
    {
      await using before = await startTestServer({ homeDir: home });
      first = await (await postApi(before, '/api/chat', body, headers)).json();
    }
    await using after = await startTestServer({ homeDir: home });
    const response = await postApi(after, '/api/chat', body, headers);
    expect([response.status, await response.json(), after.provider.served()]).toEqual([200, first, 0]);
  });
});
