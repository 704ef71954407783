import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Db } from '../../../kernel/db/db.ts';
import { operation } from '../../../kernel/db/operation.ts';
import { auditMigrations } from '../../../kernel/db/audit.ts';
import { openInlineDb } from '../../../kernel/db/sqlite/inline.ts';
import { nodeMigrations } from '../../operations/nodes/migrations.ts';
import { nodeOperations } from '../../operations/nodes/store.ts';
import { beginBoot, endBoot } from '../../operations/nodes/testing/boots.ts';
import { approvalMigrations } from './migrations.ts';
import { approvalOperations, askForCall, type Asking, decide, expireDue, leaveRequest, listPending, type NewRequest } from './store.ts';

const askApproval = operation('approvals.ask', askForCall);
let db: Db;
beforeEach(async () => {
  db = await openInlineDb({
    migrations: [...auditMigrations, ...approvalMigrations, ...nodeMigrations],
    operations: [...approvalOperations, askApproval, ...nodeOperations],
  });
  await beginBoot(db, 'boot');
});
afterEach(() => db[Symbol.asyncDispose]());

const request: NewRequest = {
  id: 'ap_1',
  digest: 'd1',
  conversationRef: 'cv_1',
  sessionKey: 'ada:desk',
  agentId: 'default',
  origin: 'rpc',
  traceId: '0'.repeat(32),
  tool: 'change',
  action: 'change',
  reason: 'rule',
  trustLevel: 'clean',
  paramsJson: '{"a":"xxxx"}',
  paramsBytes: 12,
  createdAtMs: 1000,
  timeoutMs: 500,
  expiresAtMs: 1500,
  chatJson: null,
  turnJson: null,
};

const ask = (over: Partial<NewRequest> = {}, more: Partial<Asking> = {}) =>
  db.write(askApproval, {
    request: { ...request, ...over },
    bounds: { perAgent: 2, inAll: 3 },
    approvalCacheMs: 100,
    denialCacheMs: 100,
    grantMs: 1000,
    keepMs: 10_000,
    isRefused: false,
    waitsAt: 'boot',
    ...more,
  });
const pending = async (atMs = 1000, after = '', pageCharacters = 1_000_000) => db.read(listPending, { agentIds: null, atMs, after, pageCharacters });
const approve = (over: { readonly atMs: number }) =>
  db.write(decide, { agentIds: null, approved: true, by: 'ada', reason: null, principalId: 'token:a', traceId: '', ...over });

test('pending requests are limited for each agent and in all', async () => {
  expect(await ask()).toMatchObject({ kind: 'waits', isNew: true });
  expect(await ask({ id: 'ap_x' })).toMatchObject({ kind: 'waits', requestId: 'ap_1', isNew: false });
  expect(await ask({ id: 'ap_2', digest: 'd2' })).toMatchObject({ isNew: true });
  expect(await ask({ id: 'ap_3', digest: 'd3' })).toEqual({ kind: 'full', limit: 'perAgent' });
  expect(await ask({ id: 'ap_3', digest: 'd3', agentId: 'other' })).toMatchObject({ isNew: true });
  expect(await ask({ id: 'ap_4', digest: 'd4', agentId: 'third' })).toEqual({ kind: 'full', limit: 'inAll' });
  // Overdue requests do not count, even before they are closed.
  expect(await ask({ id: 'ap_5', digest: 'd5', createdAtMs: 1500, expiresAtMs: 2000 })).toMatchObject({ isNew: true });
});

test('requests of attended turns and of suspended turns are counted separately', async () => {
  const left = (id: string, agentId = 'default') => ask({ id, digest: id, agentId, turnJson: JSON.stringify({ turnId: id }) });
  const attended = (id: string, agentId = 'default') => ask({ id, digest: id, agentId });
  for (const id of ['ap_l1', 'ap_l2']) expect(await left(id)).toMatchObject({ isNew: true });
  expect(await left('ap_l3')).toEqual({ kind: 'full', limit: 'perAgent' });
  expect(await left('ap_l4', 'other')).toMatchObject({ isNew: true });
  expect(await left('ap_l5', 'third')).toEqual({ kind: 'full', limit: 'inAll' });
  for (const id of ['ap_a1', 'ap_a2']) expect(await attended(id)).toMatchObject({ isNew: true });
  expect(await attended('ap_a3')).toEqual({ kind: 'full', limit: 'perAgent' });
  expect(await attended('ap_a4', 'other')).toMatchObject({ isNew: true });
  expect(await attended('ap_a5', 'third')).toEqual({ kind: 'full', limit: 'inAll' });
  expect((await pending()).total).toBe(6);
});

test('an overdue request is neither joined nor decided nor listed, and is closed once', async () => {
  await ask();
  expect((await pending(1499)).total).toBe(1);
  expect((await pending(1500)).total).toBe(0);
  expect((await approve({ atMs: 1500 })).decided).toEqual([]);
  expect(await ask({ id: 'ap_2', createdAtMs: 1500, expiresAtMs: 2000 })).toMatchObject({ kind: 'waits', requestId: 'ap_2', isNew: true });
  expect((await db.write(expireDue, { atMs: 1600 })).decided).toEqual([]);
  expect((await db.write(expireDue, { atMs: 2000 })).decided).toMatchObject([{ id: 'ap_2' }]);
  expect((await db.write(expireDue, { atMs: 2000 })).decided).toEqual([]);
});

test('an awaited approval holds for the cache, any other for one call', async () => {
  await ask();
  await approve({ atMs: 1100 });
  expect(await ask({ createdAtMs: 1199 })).toMatchObject({ kind: 'allowed', audit: { metadata: { by: 'cache' } } });
  expect(await ask({ id: 'ap_2', createdAtMs: 1200, expiresAtMs: 5000 })).toMatchObject({ kind: 'waits', isNew: true });
  await db.write(leaveRequest, { id: 'ap_2', waitsAt: 'another boot' });
  await db.write(leaveRequest, { id: 'ap_2', waitsAt: 'boot' });
  await approve({ atMs: 1300 });
  expect(await ask({ id: 'ap_3', createdAtMs: 2299 })).toMatchObject({ kind: 'allowed', audit: { metadata: { by: 'grant' } } });
  expect(await ask({ id: 'ap_3', createdAtMs: 2299 })).toMatchObject({ kind: 'waits', isNew: true });
});

test('an approval of a call that waited in a daemon that died holds for the next one; a call of another daemon that joins waits there', async () => {
  await ask();
  await endBoot(db, 'boot');
  await approve({ atMs: 1100 });
  expect(await ask({ id: 'ap_2', createdAtMs: 1150 })).toMatchObject({ kind: 'allowed', audit: { metadata: { by: 'grant' } } });
  await beginBoot(db, 'next');
  expect(await ask({ id: 'ap_2', createdAtMs: 1300, expiresAtMs: 5000 })).toMatchObject({ kind: 'waits', isNew: true });
  expect(await ask({ id: 'ap_3', createdAtMs: 1300, expiresAtMs: 5000 }, { waitsAt: 'next' })).toMatchObject({ requestId: 'ap_2', isNew: false });
  await approve({ atMs: 1350 });
  expect(await ask({ id: 'ap_3', createdAtMs: 1351 })).toMatchObject({ kind: 'allowed', audit: { metadata: { by: 'cache' } } });
});

test('pages of pending requests are short when arguments are long', async () => {
  for (const n of [1, 2]) await ask({ id: `ap_${n}`, digest: `d${n}` });
  const first = await pending(1000, '', 12);
  expect([first.total, first.rows.map(({ id }) => id)]).toEqual([2, ['ap_1']]);
  expect((await pending(1000, 'ap_1', 12)).rows.map(({ id }) => id)).toEqual(['ap_2']);
  expect((await pending(1000, '', 1)).rows).toHaveLength(1);
});

test('the arguments of decided requests are deleted, and after a while the row is too', async () => {
  const rows = () =>
    db.write(decide, { id: 'ap_1', agentIds: null, approved: true, by: 'b', reason: null, atMs: 1300, principalId: 'p', traceId: '' });
  await ask();
  await approve({ atMs: 1100 });
  expect((await rows()).found).toMatchObject([{ state: 'approved', decidedBy: 'ada', paramsJson: null }]);
  await ask({ id: 'ap_2', digest: 'd2', createdAtMs: 20_000, expiresAtMs: 30_000 });
  expect((await rows()).found).toEqual([]);
});
