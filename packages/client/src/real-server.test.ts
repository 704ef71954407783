import { startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from './client.ts';
import { InvalidParamsError, NotFoundError, PermissionError, ServerError } from './errors.ts';
import type { GapEvent, ServerEvent } from './events.ts';
import { createSocket } from './socket.ts';
import { startCutter } from './testing/cutter.ts';
import type { TurnEvent } from './turn.ts';

const quick = { initialDelayMs: 1, maxDelayMs: 20 };

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

async function openThroughCutter() {
  const wire = await startCutter(server.url);
  return { wire, client: createClient({ url: wire.url, token: server.token }), [Symbol.asyncDispose]: () => wire[Symbol.asyncDispose]() };
}

test('runs a turn, whole and streamed, in one conversation', async () => {
  server.provider.queue({ text: 'Hello Ada' }, { text: ['One ', 'two ', 'three'] });
  const first = await server.client.turn({ message: 'I am Ada', sessionKey: 'ada:turns' });
  expect(first).toMatchObject({ response: 'Hello Ada', finishReason: 'stop', sessionKey: 'ada:turns' });
  const events: TurnEvent[] = [];
  for await (const event of server.client.streamTurn({ message: 'Count', conversationRef: first.conversationRef })) events.push(event);
  const last = events.pop();
  expect(events.map((event) => (event.type === 'token' ? event.delta : event.type)).join('')).toBe('One two three');
  expect(last).toMatchObject({ type: 'done', result: { response: 'One two three', conversationRef: first.conversationRef } });
});

test('the same key returns the same turn; another request with it is a conflict', async () => {
  server.provider.queue({ text: 'Only once' });
  const served = server.provider.served();
  const request = { message: 'Say it', sessionKey: 'ada:key' };
  const first = await server.client.turn(request, { idempotencyKey: 'a-key' });
  expect(await server.client.turn(request, { idempotencyKey: 'a-key' })).toEqual(first);
  expect(server.provider.served()).toBe(served + 1);
  await expect(server.client.turn({ ...request, message: 'Another' }, { idempotencyKey: 'a-key' })).rejects.toMatchObject({ code: 'conflict' });
});

test('a stream with many connection losses yields each delta once and is one turn', async () => {
  await using session = await openThroughCutter();
  const pieces = Array.from({ length: 12 }, (_, index) => `piece ${index} `);
  server.provider.queue({ text: pieces, paceMs: 10 });
  const served = server.provider.served();
  const heard: string[] = [];
  let cuts = 0;
  for await (const event of session.client.streamTurn({ message: 'Count', sessionKey: 'ada:cut' }, { retry: { ...quick, retries: 10 } })) {
    if (event.type === 'done') expect(event.result.response).toBe(pieces.join(''));
    if (event.type === 'token') heard.push(event.delta);
    if (event.type === 'token' && cuts < 3) {
      cuts += 1;
      session.wire.cut();
    }
  }
  expect(cuts).toBe(3);
  expect(heard.join('')).toBe(pieces.join(''));
  expect(server.provider.served()).toBe(served + 1);
});

test('a failed turn throws an error of its class and is not retried', async () => {
  const served = server.provider.served();
  server.provider.queue({ status: 400, error: { message: 'Nonsense' } }, { text: ['Begun '], breakAfter: { deltas: 1, by: 'error' } });
  await expect(server.client.turn({ message: 'Fail', sessionKey: 'ada:fail' })).rejects.toBeInstanceOf(ServerError);
  const failing = (async () => {
    for await (const _ of server.client.streamTurn({ message: 'Fail', sessionKey: 'ada:fail' }));
  })();
  await expect(failing).rejects.toMatchObject({ code: expect.stringMatching(/internal|unavailable/) });
  expect(server.provider.served()).toBe(served + 2);
  await expect(server.client.turn({ message: '' })).rejects.toBeInstanceOf(InvalidParamsError);
});

test('without a key, leaving the loop stops the turn at the provider', async () => {
  const aborted = server.provider.aborted();
  server.provider.queue({ text: ['a ', 'b ', 'c '], breakAfter: { deltas: 2, by: 'stall' } });
  for await (const event of server.client.streamTurn({ message: 'Go on', sessionKey: 'ada:leave' }, { idempotencyKey: false })) {
    expect(event.type).toBe('token');
    break;
  }
  await expect.poll(() => server.provider.aborted()).toBe(aborted + 1);
});

test('events arrive live, and those missed during a connection loss follow', async () => {
  await using session = await openThroughCutter();
  const heard: (ServerEvent | GapEvent)[] = [];
  const states: string[] = [];
  const controller = new AbortController();
  const listening = (async () => {
    const options = { ...quick, kinds: ['agent:hot_added', 'agent:hot_removed'] as const, signal: controller.signal };
    for await (const event of session.client.events({ ...options, onState: (state) => states.push(state) })) heard.push(event);
  })();
  await expect.poll(() => states.at(-1)).toBe('open');
  await server.client.call('agents.create', { agentId: 'first' });
  await expect.poll(() => heard.length).toBe(1);
  session.wire.cut();
  // Happens while disconnected.
  await server.client.call('agents.create', { agentId: 'second' });
  await server.client.call('agents.delete', { agentId: 'first' });
  await expect.poll(() => heard.length).toBe(3);
  expect(
    heard.map((event) =>
      event.kind === 'agent:hot_added' || event.kind === 'agent:hot_removed' ? `${event.kind} ${event.payload.agentId}` : event.kind,
    ),
  ).toEqual(['agent:hot_added first', 'agent:hot_added second', 'agent:hot_removed first']);
  expect(heard.map(({ id }) => Number(id))).toEqual(heard.map(({ id }) => Number(id)).toSorted((a, b) => a - b));
  controller.abort(new Error('enough'));
  await expect(listening).rejects.toThrow('enough');

  const { entries } = await server.client.activity({ limit: 100 });
  expect(entries.filter(({ event }) => event.startsWith('agent:hot')).map(({ id }) => String(id))).toEqual(heard.map(({ id }) => id));
});

test('an unknown event id yields a gap; an unknown kind or a missing scope ends the stream', async () => {
  for await (const event of server.client.events({ lastEventId: '999999999' })) {
    expect(event).toMatchObject({ kind: 'gap', payload: { reason: 'unknown' } });
    break;
  }
  await expect(server.client.events({ kinds: ['nonsense' as 'system:error'] }).next()).rejects.toBeInstanceOf(InvalidParamsError);
  const narrow = await server.as(['api']);
  await expect(narrow.events().next()).rejects.toBeInstanceOf(PermissionError);
});

test('a file is uploaded, attached to a turn and downloaded', async () => {
  const stored = await server.client.upload(new Blob(['# Notes\n'], { type: 'text/markdown' }), { fileName: 'notes.md' });
  expect(stored).toMatchObject({ contentType: expect.stringContaining('text/markdown'), size: 8, fileName: 'notes.md' });
  expect(await server.client.mediaInfo(stored.mediaId)).toEqual(stored);
  expect(await server.client.listMedia({ limit: 5 })).toMatchObject({ total: 1, media: [stored] });
  expect(await (await server.client.media(stored.mediaId, { range: 'bytes=2-6' })).text()).toBe('Notes');
  server.provider.queue({ text: 'Read.' });
  const { response } = await server.client.turn({ message: 'Read this', sessionKey: 'ada:file', attachments: [{ mediaId: stored.mediaId }] });
  expect(response).toBe('Read.');
  await server.client.deleteMedia(stored.mediaId);
  await expect(server.client.media(stored.mediaId)).rejects.toBeInstanceOf(NotFoundError);
});

test('a socket continues after a connection loss', async () => {
  await using session = await openThroughCutter();
  using socket = createSocket({ url: session.wire.url, token: server.token, ...quick });
  expect((await socket.call('system.ping')).pong).toBe(true);
  const read = socket.call('agents.list');
  session.wire.cut();
  expect((await read).agents).toContain('default');
});
