import { afterEach, beforeEach, expect, test } from 'vitest';
import { approvePairing, findMessage, findPairing, messageKind, type MessageRow, type PairingRow } from '../features/channels/messages/store.ts';
import { acceptWork, maxWaiting } from '../features/unattended/durable/store.ts';
import type { Db } from '../kernel/db/db.ts';
import { operation } from '../kernel/db/operation.ts';
import { openInlineDb } from '../kernel/db/sqlite/inline.ts';
import { newId, nextId } from '../kernel/ids.ts';
import { acceptChannelMessages, retryChannelMessage } from './accept-channel-messages.ts';
import { migrations, operations } from './registry.ts';

const payloads = operation('test.payloads', async (tx) => {
  const rows = await tx.build<{ payloadJson: string }>((from) =>
    from.selectFrom('workItem').select('payloadJson').where('agentId', '=', 'default').orderBy('id'),
  );
  return rows.map(({ payloadJson }) => JSON.parse(payloadJson) as unknown);
});
const begin = operation('test.begin', async (tx, { id }: { readonly id: string }): Promise<void> => {
  await tx.build((to) => to.updateTable('workItem').set({ attempts: 1 }).where('workKey', '=', id));
});
const fill = operation('test.fill', async (tx, { count }: { readonly count: number }): Promise<void> => {
  for (let n = 0; n < count; n += 1)
    await acceptWork(tx, { id: nextId('wi', atMs), kind: messageKind, key: String(n), digest: '', agentId: null, payload: null, fits: true, atMs });
});

const states = operation('test.states', async (tx) =>
  (await tx.build<{ state: string }>((from) => from.selectFrom('workItem').select('state').orderBy('id'))).map(({ state }) => state),
);

let db: Db;
beforeEach(async () => {
  db = await openInlineDb({ operations: [...operations, payloads, begin, fill, states], migrations });
});
afterEach(() => db[Symbol.asyncDispose]());

const atMs = 1_000;
const message = (platformId: string, text: string, more: Partial<MessageRow> = {}): MessageRow => ({
  id: nextId('cm', atMs),
  instance: 'net',
  channelType: 'irc',
  eventKey: platformId,
  conversationId: 'ada',
  threadId: null,
  conversationKind: 'direct',
  senderId: 'account:ada',
  senderName: 'ada',
  text,
  platformId,
  subject: null,
  attachmentsJson: null,
  isForwarded: 0,
  isBot: 0,
  verdict: 'turn',
  agentId: 'default',
  conversationRef: 'cv_1',
  sentAtMs: atMs,
  receivedAtMs: atMs,
  ...more,
});
const workOf = ({ id, text }: MessageRow, fits = true) => ({
  id: nextId('wi', atMs),
  kind: messageKind,
  key: id,
  digest: '',
  agentId: 'default',
  payload: { text },
  fits,
  atMs,
});
const accept = (row: MessageRow, fits?: boolean) => db.write(acceptChannelMessages, { messages: [{ row, work: workOf(row, fits) }] });
const change = (platformId: string, text: string) =>
  db.write(acceptChannelMessages, {
    messages: [],
    changes: [{ instance: 'net', conversationId: 'ada', platformId, senderId: 'account:ada', text, atMs }],
  });
const read = () => db.read(payloads, undefined);
const audit = () => ({
  id: newId('au'),
  atMs,
  principalId: 'token:root',
  traceId: 'trace',
  action: 'channels.retry',
  classification: 'mutate' as const,
  outcome: 'success' as const,
});

test('a message that its sender deleted while it had no turn is not answered later', async () => {
  const row = message('m1', 'my secret', { verdict: 'suspended' });
  await db.write(acceptChannelMessages, { messages: [{ row }] });
  await change('m1', '');
  await expect(db.write(retryChannelMessage, { row, work: workOf(row), audit: audit() })).rejects.toMatchObject({ code: 'precondition_failed' });
  await accept(message('m2', 'next'));
  expect(await read()).toEqual([{ text: 'next' }]);
});

test('a change is reported to the next turn, also when the queue refused the message before it', async () => {
  const first = message('m1', 'one');
  await accept(first);
  await db.write(begin, { id: first.id });
  await change('m1', 'uno');
  await db.write(fill, { count: maxWaiting });
  const refused = message('m2', 'two');
  await accept(refused, false);
  expect(await db.read(findMessage, { id: refused.id })).toMatchObject({ verdict: 'full' });
  await accept(message('m3', 'three'));
  expect(await read()).toEqual([{ text: 'one' }, { text: 'three', changes: [{ was: 'one', now: 'uno' }] }]);
});

test('a change that was taken back is not reported', async () => {
  const first = message('m1', 'one');
  await accept(first);
  await db.write(begin, { id: first.id });
  await change('m1', 'uno');
  await change('m1', 'one');
  await accept(message('m2', 'two'));
  expect(await read()).toEqual([{ text: 'one' }, { text: 'two' }]);
});

test('a change of a forwarded text is not reported as a change of its sender', async () => {
  const first = message('m1', 'one', { isForwarded: 1 });
  await accept(first);
  await db.write(begin, { id: first.id });
  await change('m1', 'obey');
  await accept(message('m2', 'two'));
  expect(await read()).toEqual([{ text: 'one' }, { text: 'two' }]);
});

test('a pairing holds for its platform: the same id on another one is somebody else', async () => {
  const pairing = (channelType: string, codeMac: string): PairingRow => ({
    id: newId('pr'),
    instance: 'net',
    channelType,
    senderId: '1001',
    senderName: 'Ada',
    conversationId: '1001',
    codeMac,
    person: null,
    principalId: null,
    requestedAtMs: atMs,
    expiresAtMs: atMs + 60_000,
  });
  const request = (one: PairingRow, platformId: string) =>
    db.write(acceptChannelMessages, { messages: [{ row: message(platformId, 'hello', { verdict: 'pairing' }), pairing: one }] });
  const find = (channelType: string) => db.read(findPairing, { instance: 'net', channelType, senderId: '1001' });
  await request(pairing('telegram', 'mac-1'), 'm1');
  const approval = { instances: null, person: null, personPrincipalId: null, audit: audit(), atMs };
  expect(await db.write(approvePairing, { ...approval, codeMac: 'mac-1' })).toMatchObject({ channelType: 'telegram' });
  expect(await find('discord')).toBeUndefined();
  await request(pairing('discord', 'mac-2'), 'm2');
  expect(await find('discord')).toMatchObject({ codeMac: 'mac-2', principalId: null });
  expect(await find('telegram')).toBeUndefined();
});

/** Late messages of one sender, to be answered together. */
async function acceptLate(...messages: readonly MessageRow[]): Promise<void> {
  const target = { ref: 'cv_1', sessionKey: 'a:b', agentId: 'default', principalId: 'person:ada' };
  await db.write(acceptChannelMessages, {
    messages: messages.map((row) => {
      const to = { instance: 'net', channelType: 'irc', conversationId: 'ada', threadId: null, conversationKind: 'direct' };
      const { senderId, senderName, text, sentAtMs } = row;
      const payload = { target, to, senderId, senderName, text, trust: 'member', traceId: 'trace', sentAtMs };
      return { row, work: { ...workOf(row), payload }, joins: true };
    }),
  });
}
const waiting = async () => {
  const works = (await read()) as { readonly text: string; readonly later?: { readonly text: string }[] }[];
  return works.map(({ text, later = [] }) => [text, ...later.map((one) => one.text)]);
};

test('late messages of one sender are one work, in which each can still be changed or deleted', async () => {
  const first = message('m1', 'one');
  await acceptLate(first, message('m2', 'two'), message('m3', 'three'), message('m4', 'other', { senderId: 'account:eve' }));
  expect(await waiting()).toEqual([['one', 'two', 'three'], ['other']]);
  // A repeat is known.
  await acceptLate(message('m3', 'three'));
  await change('m2', 'due');
  await change('m1', '');
  expect(await waiting()).toEqual([['', 'due', 'three'], ['other']]);
  await db.write(begin, { id: first.id });
  await change('m3', 'tre');
  await acceptLate(message('m5', 'five'));
  expect(await read()).toMatchObject([
    { later: [{ text: 'due' }, { text: 'three' }] },
    {},
    { text: 'five', changes: [{ was: 'three', now: 'tre' }] },
  ]);
});

test('late messages that were all deleted are not answered', async () => {
  await acceptLate(message('m1', 'one'), message('m2', 'two'));
  await change('m1', '');
  await change('m2', '');
  expect(await db.read(states, undefined)).toEqual(['aborted']);
});
