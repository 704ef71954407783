import { createStepClock, sql, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Db } from '../../../kernel/db/db.ts';
import { operation } from '../../../kernel/db/operation.ts';
import { openInlineDb } from '../../../kernel/db/sqlite/inline.ts';
import { createEventBus } from '../../../kernel/event-bus.ts';
import { newId } from '../../../kernel/ids.ts';
import type { InboxMessage } from './api.ts';
import { createInbox } from './inbox.ts';
import { inboxMigrations } from './migrations.ts';
import { inboxDeliver, inboxOperations, listInbox, maxKept, maxTextCharacters } from './store.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ config: { agents: { default: { model: 'mock/mock-fast' }, other: { model: 'mock/mock-fast' } } } });
});
afterAll(() => server[Symbol.asyncDispose]());

let last = 0;
/** Returns ordered ids, because generated ids within one millisecond are not ordered. */
const nextId = () => `in_0199e0a0-7c00-7000-8000-${String((last += 1)).padStart(12, '0')}`;

const message = (over: Partial<InboxMessage> = {}): InboxMessage => ({
  id: nextId(),
  opKey: newId('op'),
  digest: 'd',
  source: 'cron',
  agentId: 'default',
  conversationRef: null,
  principalId: 'token:a',
  level: 'info',
  text: 'Three mails need an answer.',
  atMs: 1_790_000_000_000,
  ...over,
});

/** Inserts messages like the daemon's own writer. */
async function put(...messages: readonly InboxMessage[]): Promise<void> {
  const insert =
    'INSERT INTO inbox_message (id, op_key, digest, source, agent_id, conversation_ref, principal_id, level, text, created_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)';
  for (const { id, opKey, digest, source, agentId, conversationRef, principalId, level, text, atMs } of messages)
    await sql(server.homeDir, insert, id, opKey, digest, source, agentId, conversationRef, principalId, level, text, atMs);
}

test('shows each caller its own messages and an admin all, on both transports, newest first', async () => {
  const ada = await server.as(['rpc']);
  const bob = await server.as(['rpc']);
  const own = ['first', 'second', 'third'].map((text) => message({ principalId: `token:${ada.tokenId}`, text }));
  await put(...own, message({ principalId: `token:${bob.tokenId}`, text: 'for Bob' }));
  using socket = server.socket(ada.token);
  for (const client of [ada, socket]) {
    const { messages, unread } = await client.call('inbox.list', {});
    expect(messages.map(({ text }) => text)).toEqual(['third', 'second', 'first']);
    expect(unread).toBe(3);
    const page = await client.call('inbox.list', { limit: 1, before: own[2]?.id });
    expect(page.messages.map(({ text }) => text)).toEqual(['second']);
  }
  // Messages of others are ignored like unknown ones.
  expect(await bob.call('inbox.markRead', { ids: [own[0]?.id ?? '', 'in_00000000-0000-7000-8000-000000000000'] })).toEqual({ marked: 0 });
  expect(await ada.call('inbox.markRead', { ids: [own[0]?.id ?? ''] })).toEqual({ marked: 1 });
  expect((await ada.call('inbox.list', { unreadOnly: true })).messages.map(({ text }) => text)).toEqual(['third', 'second']);
  expect(await socket.call('inbox.markRead', { all: true })).toEqual({ marked: 2 });
  expect((await server.client.call('inbox.list', { unreadOnly: true })).messages.map(({ text }) => text)).toEqual(['for Bob']);
});

test('a token limited to agents sees nothing of other agents, and invalid input is named', async () => {
  const bound = await server.as(['rpc'], { agents: ['other'] });
  await put(
    message({ principalId: `token:${bound.tokenId}`, agentId: 'default' }),
    message({ principalId: `token:${bound.tokenId}`, agentId: 'other', text: 'mine' }),
  );
  expect((await bound.call('inbox.list', {})).messages.map(({ text }) => text)).toEqual(['mine']);
  await expect(bound.call('inbox.markRead', {})).rejects.toMatchObject({ code: 'invalid_params' });
  await expect(bound.call('inbox.markRead', { all: true, ids: [newId('in')] })).rejects.toMatchObject({ code: 'invalid_params' });
  await expect(bound.call('inbox.list', { limit: 0 })).rejects.toMatchObject({ code: 'invalid_params' });
  await expect((await server.as(['api'])).call('inbox.list', {})).rejects.toMatchObject({ code: 'insufficient_scope' });
});

test('a full inbox accepts new messages even after a backward clock step: messages from the future are dropped', async () => {
  const db: Db = await openInlineDb({ operations: [...inboxOperations, deliver, deliverMany], migrations: inboxMigrations });
  await using _ = db;
  const atMs = 1_790_000_000_000;
  await db.write(deliverMany, { ...message({ atMs: atMs + 86_400_000 }), id: 'in_z', count: maxKept });
  for (const text of ['one', 'two']) await db.write(deliver, message({ id: `in_a_${text}`, text, atMs }));
  const everything = { principalId: null, agentIds: null, unreadOnly: false, before: null, limit: 2 * maxKept };
  const { rows } = await db.read(listInbox, everything);
  expect(rows).toHaveLength(maxKept);
  expect(rows.map(({ text }) => text)).toEqual(expect.arrayContaining(['one', 'two']));
});

const deliver = operation('test.deliver', inboxDeliver);
const deliverMany = operation('test.deliverMany', async (tx, { count, ...rest }: InboxMessage & { readonly count: number }) => {
  for (let n = 0; n < count; n += 1) await inboxDeliver(tx, { ...rest, id: `${rest.id}_${String(n).padStart(5, '0')}`, opKey: `${rest.opKey}_${n}` });
});

test('the built-in channel is one of the channels: its deliveries are in the outbox, once, and its health says when', async () => {
  const before = (await server.client.call('delivery.queue.status', { channel_type: 'gateway' })).delivered;
  await server.client.call('cron.add', {
    name: 'bell',
    schedule: { kind: 'at', at: '2099-01-01T00:00:00Z' },
    payload: { kind: 'delivery', text: 'Ding.' },
  });
  await server.client.call('cron.run', { jobName: 'bell', mode: 'force' });
  const sent = async () =>
    (await server.client.call('delivery.list', { channel_instance_id: 'gateway' })).deliveries.filter(({ text }) => text === 'Ding.');
  await expect
    .poll(sent)
    .toMatchObject([{ state: 'accepted', endpoint: { channelType: 'gateway', channelInstanceId: 'gateway', conversationId: 'inbox' } }]);
  const [message] = (await server.client.call('inbox.list', {})).messages.filter(({ text }) => text === 'Ding.');
  expect((await sent())[0]?.platformId).toBe(message?.id);
  expect(await server.client.call('delivery.queue.status', { channel_type: 'gateway' })).toMatchObject({ delivered: before + 1, pending: 0 });
  expect((await server.client.call('obs.delivery.recent', { channelType: 'gateway', channelId: 'inbox' })).deliveries.length).toBe(before + 1);
  const health = (await server.client.call('channels.health', {})).channels.find(({ channelType }) => channelType === 'gateway');
  expect(health).toMatchObject({ state: 'healthy', lastSentAt: expect.any(Number) });
});

test('a delivery happens once per key, within limits, and is announced to its owner', async () => {
  const db: Db = await openInlineDb({ operations: [...inboxOperations, deliver, deliverMany], migrations: inboxMigrations });
  await using _ = db;
  const one = message({ text: 'x'.repeat(maxTextCharacters + 1) });
  expect(await db.write(deliver, one)).toBe('accepted');
  expect(await db.write(deliver, { ...one, id: newId('in') })).toBe('repeated');
  expect(await db.write(deliver, { ...one, id: newId('in'), digest: 'other' })).toBe('mismatch');
  const everything = { principalId: null, agentIds: null, unreadOnly: false, before: null, limit: 2 * maxKept };
  const { rows } = await db.read(listInbox, everything);
  expect(rows.map(({ text }) => text.length)).toEqual([maxTextCharacters]);
  await db.write(deliverMany, { ...message(), id: 'in_z', count: maxKept + 20 });
  expect((await db.read(listInbox, everything)).rows).toHaveLength(maxKept);
  const bus = createEventBus(() => {});
  const heard: unknown[] = [];
  bus.listen(['inbox:message'], (event) => heard.push(event));
  createInbox({
    db,
    bus,
    clock: createStepClock(1),
    deliver,
    delivery: { storeCall: () => expect.unreachable(), wake: () => expect.unreachable() },
  }).api.announce(one);
  expect(heard).toEqual([
    {
      kind: 'inbox:message',
      owner: 'token:a',
      payload: { id: one.id, source: 'cron', level: 'info', agentId: 'default', conversationRef: null, timestamp: one.atMs },
    },
  ]);
});
