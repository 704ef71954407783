import { afterEach, beforeEach, expect, test } from 'vitest';
import { beginChannelSend, recoverChannelSends, finishChannelSend, pruneChannelSends } from './channel-sends.ts';
import { migrations, operations } from './registry.ts';
import type { Db } from '../kernel/db/db.ts';
import { operation } from '../kernel/db/operation.ts';
import { openInlineDb } from '../kernel/db/sqlite/inline.ts';
import { insertOccurrence, listRuns, type OccurrenceRow } from '../features/unattended/cron/occurrences/occurrence-store.ts';
import { outcomeOf } from '../features/unattended/cron/occurrences/sends.ts';
import { newId, nextId } from '../kernel/ids.ts';
import type { PartRow } from '../features/channels/delivery/api.ts';
import { decidePart, dropEdit, enqueueParts, listParts, readHeads } from '../features/channels/delivery/store.ts';

const addRun = operation('test.addRun', (tx, row: OccurrenceRow) => insertOccurrence(tx, row));
let db: Db;
beforeEach(async () => {
  db = await openInlineDb({ operations: [...operations, addRun], migrations });
});
afterEach(() => db[Symbol.asyncDispose]());

const atMs = 1_000;
function message(conversationId: string, texts: readonly string[], opKey = newId('op')): PartRow[] {
  const base = nextId('ob', atMs);
  return texts.map((text, index) => ({
    id: `${base}-${index + 1}`,
    opKey,
    part: index + 1,
    parts: texts.length,
    digest: text,
    instance: 'net',
    channelType: 'irc',
    conversationId,
    threadId: null,
    conversationKind: 'direct',
    text,
    subject: null,
    replyTo: null,
    editsId: null,
    buttonsJson: null,
    fileJson: null,
    ambiguousSinceMs: null,
    begunAtMs: null,
    state: 'pending',
    attempts: 0,
    repeats: 0,
    unsolicited: null,
    notBeforeMs: atMs,
    expiresAtMs: atMs + 60_000,
    bootId: null,
    platformId: null,
    errorKind: null,
    error: null,
    agentId: 'default',
    principalId: 'person:ada',
    conversationRef: null,
    turnId: null,
    createdAtMs: atMs,
    endedAtMs: null,
  }));
}
const audit = () => ({
  id: newId('au'),
  atMs,
  principalId: 'token:root',
  action: 'delivery.resend',
  classification: 'mutate' as const,
  outcome: 'success' as const,
  traceId: 'a'.repeat(32),
});
const rows = async () => (await db.read(listParts, { agentIds: null, state: null, instance: 'net', offset: 0, limit: 50 })).rows.toReversed();
const heads = async () => {
  const all = await rows();
  return (await db.read(readHeads, { instance: 'net' })).map(({ id }) => all.find((row) => row.id === id)?.text);
};
const begin = async (id: string, bootId = 'boot', now = atMs) =>
  (await db.write(beginChannelSend, { id, channelType: 'irc', bootId, atMs: now, ageNowMs: now })).is;
const states = async () => (await rows()).map(({ text, state }) => `${text} ${state}`);
const alerts = async () => {
  const [row] = await db
    .read(
      // The inbox is read as an operator does.
      (await import('../features/unattended/inbox/store.ts')).listInbox,
      { principalId: null, agentIds: null, unreadOnly: false, before: null, limit: 50 },
    )
    .then(({ rows }) => [rows.length]);
  return row;
};

test('parts are sent one after the other, conversations at the same time, and a message once', async () => {
  const first = message('ada', ['a1', 'a2'], 'op-a');
  await db.write(enqueueParts, { parts: first });
  await db.write(enqueueParts, { parts: message('ada', ['again'], 'op-a') });
  await db.write(enqueueParts, { parts: message('ben', ['b1']) });
  await db.write(enqueueParts, { parts: message('ada', ['later']) });
  expect(await heads()).toEqual(['a1', 'b1']);
  const [a1] = first;
  expect(await begin(a1?.id ?? '')).toBe('begun');
  expect(await begin(a1?.id ?? '')).toBe('taken');
  expect(await heads()).toEqual(['a1', 'b1']);
  await db.write(finishChannelSend, { id: a1?.id ?? '', bootId: 'boot', is: 'accepted', platformId: 'm1', atMs });
  expect(await heads()).toEqual(['a2', 'b1']);
});

test('what may have been sent holds its later parts until a person decides, and other messages are sent', async () => {
  const parts = message('ada', ['a1', 'a2', 'a3']);
  await db.write(enqueueParts, { parts });
  await db.write(enqueueParts, { parts: message('ada', ['later']) });
  const id = parts[0]?.id ?? '';
  await begin(id);
  await db.write(finishChannelSend, { id, bootId: 'boot', is: 'unknown', error: 'cut', atMs });
  expect(await states()).toEqual(['a1 unknown', 'a2 held', 'a3 held', 'later pending']);
  expect(await heads()).toEqual(['later']);
  expect(await alerts()).toBe(1);
  await db.write(decidePart, { id, as: 'accepted', agentIds: null, expiresAtMs: 90_000, audit: audit(), atMs });
  expect(await states()).toEqual(['a1 accepted', 'a2 pending', 'a3 pending', 'later pending']);
  await expect(db.write(decidePart, { id, as: 'resend', agentIds: null, expiresAtMs: 90_000, audit: audit(), atMs })).rejects.toMatchObject({
    code: 'precondition_failed',
  });
});

const left = { canResolve: false, canEdit: true, repeatUnknown: false };

test('where the operator chose doubles over losses, what may have been sent is sent once more, and parked after that', async () => {
  const parts = message('ada', ['a1', 'a2']);
  await db.write(enqueueParts, { parts });
  const id = parts[0]?.id ?? '';
  await begin(id);
  const cut = { id, bootId: 'boot', error: 'cut', repeatUnknown: true, atMs };
  expect(await db.write(finishChannelSend, { ...cut, is: 'unknown' })).toEqual({ state: 'pending' });
  expect(await states()).toEqual(['a1 pending', 'a2 pending']);
  expect((await rows())[0]).toMatchObject({ repeats: 1, attempts: 0 });
  await begin(id);
  // A refusal says nothing of the first try.
  expect(await db.write(finishChannelSend, { ...cut, is: 'rejected' })).toMatchObject({ state: 'unknown', alert: { level: 'alert' } });
  expect(await states()).toEqual(['a1 unknown', 'a2 held']);
  expect(await alerts()).toBe(1);
});

test('what a dead process was sending is sent once more where the operator chose that, by every process together', async () => {
  const parts = message('ada', ['a1']);
  await db.write(enqueueParts, { parts });
  const id = parts[0]?.id ?? '';
  for (const [boot, end] of [
    ['boot-1', 'a1 pending'],
    ['boot-2', 'a1 unknown'],
  ] as const) {
    await begin(id, boot);
    await db.write(recoverChannelSends, { instance: 'net', ...left, repeatUnknown: true, atMs });
    expect(await states()).toEqual([end]);
  }
  expect(await alerts()).toBe(1);
});

test('an interrupted edit of a preview is repeated, a send that took its place is not', async () => {
  const parts = message('ada', ['a1', 'a2']).map((part, index) => (index === 0 ? { ...part, editsId: 'm1' } : part));
  await db.write(enqueueParts, { parts });
  const id = parts[0]?.id ?? '';
  await begin(id, 'boot-1');
  expect(await db.write(recoverChannelSends, { instance: 'net', ...left, atMs })).toEqual([]);
  expect(await states()).toEqual(['a1 pending', 'a2 pending']);
  await begin(id, 'boot-2');
  expect(await db.write(dropEdit, { id, bootId: 'boot-1' })).toBe(false);
  expect(await db.write(dropEdit, { id, bootId: 'boot-2' })).toBe(true);
  expect(await db.write(recoverChannelSends, { instance: 'net', ...left, atMs })).toHaveLength(1);
  expect(await states()).toEqual(['a1 unknown', 'a2 held']);
});

test('what a dead process was sending may have been sent: it is not repeated', async () => {
  const parts = message('ada', ['a1', 'a2']);
  await db.write(enqueueParts, { parts });
  const id = parts[0]?.id ?? '';
  await begin(id, 'boot-1');
  expect(await db.write(recoverChannelSends, { instance: 'other', ...left, atMs })).toEqual([]);
  expect(await db.write(recoverChannelSends, { instance: 'net', ...left, atMs })).toMatchObject([{ level: 'alert', source: 'channel' }]);
  expect(await states()).toEqual(['a1 unknown', 'a2 held']);
  expect(await heads()).toEqual([]);
  // The dead one was only slow.
  expect(await db.write(finishChannelSend, { id, bootId: 'boot-1', is: 'accepted', atMs })).toEqual({ state: undefined });
  expect(await states()).toEqual(['a1 unknown', 'a2 held']);
  expect(await alerts()).toBe(1);
  await db.write(decidePart, { id, as: 'resend', agentIds: null, expiresAtMs: 90_000, audit: audit(), atMs });
  expect(await states()).toEqual(['a1 pending', 'a2 pending']);
});

test('what was certainly not sent is tried again later, and ends when it is too old', async () => {
  const parts = message('ada', ['a1', 'a2']);
  await db.write(enqueueParts, { parts });
  const id = parts[0]?.id ?? '';
  await begin(id);
  await db.write(finishChannelSend, { id, bootId: 'boot', is: 'retry', errorKind: 'not_sent', error: 'refused', notBeforeMs: 5_000, atMs });
  expect((await rows())[0]).toMatchObject({ state: 'pending', attempts: 1, notBeforeMs: 5_000, error: 'refused' });
  expect(await begin(id, 'boot', atMs + 60_000)).toBe('ended');
  expect(await states()).toEqual(['a1 expired', 'a2 expired']);
  expect(await db.write(pruneChannelSends, { beforeMs: Date.now() + 86_400_000, limit: 10 })).toBe(3);
});

test('what became of the delivery of a job stays with its run when its parts are deleted', async () => {
  const executionId = newId('ce');
  await db.write(addRun, {
    executionId,
    jobId: 'cj_1',
    agentId: 'default',
    principalId: 'token:root',
    scheduledForMs: 1,
    triggerClass: '',
    trigger: 'scheduled',
    workKind: 'agent_turn',
    bootId: 'boot',
    status: 'completed',
    deliveryStatus: 'unknown',
    startedAtMs: 1,
    terminalAtMs: 2,
    errorKind: null,
    reason: null,
    countersJson: null,
    cause: null,
    effectsRefused: 0,
  });
  const parts = message('#lab', ['one', 'two'], `cron:${executionId}`);
  await db.write(enqueueParts, { parts });
  const runs = async () =>
    (await db.read(listRuns, { jobId: 'cj_1', limit: 5 })).map(({ deliveryStatus, sends }) => outcomeOf(deliveryStatus, sends));
  expect(await runs()).toEqual([{ status: 'unknown', isPending: true }]);
  for (const [index, is] of (['accepted', 'rejected'] as const).entries()) {
    const id = parts[index]?.id ?? '';
    await begin(id);
    await db.write(finishChannelSend, { id, bootId: 'boot', is, atMs });
  }
  expect(await runs()).toEqual([{ status: 'partial', isPending: false }]);
  expect(await db.write(pruneChannelSends, { beforeMs: Date.now() + 86_400_000, limit: 10 })).toBe(3);
  expect(await db.read(listRuns, { jobId: 'cj_1', limit: 5 })).toMatchObject([{ deliveryStatus: 'partial', sends: [] }]);
});
