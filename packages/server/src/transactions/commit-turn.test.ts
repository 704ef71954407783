import { afterEach, beforeEach, expect, test } from 'vitest';
import { abortOpenTurns, bookWork, openWork } from './open-work.ts';
import { commitTurn, openTurn } from './commit-turn.ts';
import type { ReceiptRow } from '../features/conversations/receipts/api.ts';
import type { ResponseRow } from '../features/conversations/responses/api.ts';
import type { MadeCall, MadeWork } from '../features/access/budgets/api.ts';
import { OpenRow, toCallRow } from '../features/conversations/turns/running/turn-row.ts';
import { reserveForTurn, type TurnRow } from '../features/conversations/turns/store.ts';
import type { Db } from '../kernel/db/db.ts';
import { keepReceipt } from '../features/conversations/receipts/store.ts';
import { keepResponse } from '../features/conversations/responses/store.ts';
import { operation, toCall } from '../kernel/db/operation.ts';
import { openInlineDb } from '../kernel/db/sqlite/inline.ts';
import { nodeOperations } from '../features/operations/nodes/store.ts';
import { beginBoot, endBoot } from '../features/operations/nodes/testing/boots.ts';
import { migrations } from './registry.ts';

const counts = operation('test.counts', async (tx) => {
  const rows: Record<string, number> = {};
  for (const table of ['turn', 'response', 'receipt', 'message'] as const) {
    const [found] = await tx.build<{ total: number }>((db, sql) => db.selectFrom(table).select(sql<number>`count(*)`.as('total')));
    rows[table] = found?.total ?? 0;
  }
  return rows;
});

/** The same amount in each of the records that hold it. */
const spent = operation('test.spent', async (tx) => {
  const calls = await tx.build<object>((db) =>
    db.selectFrom('modelCall').select(['turnId', 'conversationRef', 'provider', 'model', 'operation', 'outcome', 'costNano']).orderBy('id'),
  );
  const turns = await tx.build<object>((db) => db.selectFrom('turn').select(['id', 'state', 'costNano', 'reservedNano']).orderBy('id'));
  const conversations = await tx.build<object>((db) => db.selectFrom('conversation').select(['ref', 'inputTokens', 'costNano']));
  return { calls, turns, conversations };
});

let db: Db & AsyncDisposable;
beforeEach(async () => {
  db = await openInlineDb({
    operations: [
      openTurn,
      commitTurn,
      keepReceipt,
      keepResponse,
      abortOpenTurns,
      openWork,
      bookWork,
      reserveForTurn,
      counts,
      spent,
      ...nodeOperations,
    ],
    migrations,
  });
  await beginBoot(db, 'boot');
});
afterEach(() => db[Symbol.asyncDispose]());

const turn: TurnRow = {
  id: 'tn_1',
  conversationRef: 'cv_1',
  sessionKey: 'a:b',
  agentId: 'default',
  principalId: 'root',
  origin: 'api',
  state: 'running',
  finishReason: null,
  failureKind: null,
  model: null,
  steps: 0,
  inputTokens: 0,
  outputTokens: 0,
  costNano: null,
  reservedNano: null,
  traceId: '0'.repeat(32),
  startedAtMs: 1,
  endedAtMs: null,
  bootId: 'boot',
};
const receipt: ReceiptRow = {
  principalId: 'root',
  key: 'k',
  digest: 'd',
  conversationRef: 'cv_1',
  state: 'opened',
  bootId: 'boot',
  outcomeJson: null,
  createdAtMs: 1,
  expiresAtMs: 9,
};
const response: ResponseRow = {
  id: 'resp_1',
  previousId: null,
  principalId: 'root',
  agentId: 'default',
  bodyJson: '{}',
  systemJson: '[]',
  messagesJson: '[]',
  createdAtMs: 1,
  expiresAtMs: 9,
};
const conversation = {
  ref: 'cv_1',
  agentId: 'default',
  principalId: 'root',
  sessionKey: 'a:b',
  turnId: 'tn_1',
  steps: 1,
  toolCalls: 0,
  inputTokens: 1,
  outputTokens: 1,
  costNano: 0,
  messages: [{ role: 'user' as const, content: 'hi', toolJson: null, attachmentsJson: null, createdAtMs: 1 }],
  atMs: 2,
};

test('the caller’s operations run with the opening of the turn, and with its end', async () => {
  await db.write(openTurn, { turn, alongside: [toCall(keepReceipt, receipt)] });
  expect(await db.read(counts, undefined)).toEqual({ turn: 1, receipt: 1, response: 0, message: 0 });
  const alongside = [toCall(keepReceipt, { ...receipt, outcomeJson: '{}' }), toCall(keepResponse, response)];
  await db.write(commitTurn, { turn, calls: [], conversation, alongside });
  expect(await db.read(counts, undefined)).toEqual({ turn: 1, receipt: 1, response: 1, message: 1 });
});

test('a turn is lost together with rows that could not be stored with it', async () => {
  await db.write(commitTurn, { turn, calls: [], conversation: null, alongside: [toCall(keepResponse, response)] });
  const alongside = [toCall(keepReceipt, receipt), toCall(keepResponse, response)];
  const again = { turn: { ...turn, id: 'tn_2' }, calls: [], conversation, alongside };
  await expect(db.write(commitTurn, again)).rejects.toThrow(/unique/i);
  expect(await db.read(counts, undefined)).toEqual({ turn: 1, receipt: 0, response: 1, message: 0 });
});

test('the reserve of a turn whose process died is spent, in calls, turn and conversation; once', async () => {
  await db.write(commitTurn, { turn: { ...turn, state: 'completed', endedAtMs: 2 }, calls: [], conversation });
  await db.write(openTurn, { turn: { ...turn, id: 'tn_2', model: 'p/a/b', reservedNano: 500 } });
  await db.write(reserveForTurn, { id: 'tn_2', reservedNano: 700, model: 'p/a/b' });
  await db.write(openTurn, { turn: { ...turn, id: 'tn_3', conversationRef: 'cv_new', model: 'p/m', reservedNano: 11 } });
  await db.write(openTurn, { turn: { ...turn, id: 'tn_4' } });
  expect((await db.write(abortOpenTurns, { atMs: 9 })).ended).toBe(0);
  await endBoot(db, 'boot');
  expect((await db.write(abortOpenTurns, { atMs: 9 })).ended).toBe(3);
  const after = {
    calls: [
      { turnId: 'tn_2', conversationRef: 'cv_1', provider: 'p', model: 'a/b', operation: 'interactive', outcome: 'error', costNano: 700 },
      { turnId: 'tn_3', conversationRef: null, provider: 'p', model: 'm', operation: 'interactive', outcome: 'error', costNano: 11 },
    ],
    turns: [
      { id: 'tn_1', state: 'completed', costNano: null, reservedNano: null },
      { id: 'tn_2', state: 'aborted', costNano: 700, reservedNano: null },
      { id: 'tn_3', state: 'aborted', costNano: 11, reservedNano: null },
      { id: 'tn_4', state: 'aborted', costNano: null, reservedNano: null },
    ],
    conversations: [{ ref: 'cv_1', inputTokens: 1, costNano: 700 }],
  };
  expect(await db.read(spent, undefined)).toEqual(after);
  expect((await db.write(abortOpenTurns, { atMs: 10 })).ended).toBe(0);
  expect(await db.read(spent, undefined)).toEqual(after);
});

test('calls that a killed process had noted are booked once, at their price, and of the reserve what a running call may have cost', async () => {
  const { id: turnId, agentId, principalId, conversationRef, sessionKey, traceId, startedAtMs, bootId } = turn;
  const asBegun = { conversationRef, sessionKey, origin: 'rpc' as const, traceId, startedAtMs, bootId };
  const call = (costNano: number): MadeCall => ({
    provider: 'p',
    modelId: 'm',
    operation: 'interactive',
    usage: { input: costNano, output: 0, cacheRead: 0, cacheWrite: 0, estimated: false },
    cost: { input: costNano, output: 0, cacheRead: 0, cacheWrite: 0 },
    savedNano: 0,
    latencyMs: 3,
    startedAtMs: 5,
    outcome: 'ok',
  });
  const noted = (id: string, calls: readonly MadeCall[], isInFlight = false): MadeWork => ({
    id,
    agentId,
    principalId,
    conversationRef,
    calls,
    isInFlight,
  });
  // Committed, with one of two equal calls; without a row; with a row and a reserve, between calls and during one; from before the retention.
  const row = toCallRow(call(7));
  await db.write(commitTurn, { turn: { ...turn, state: 'completed', endedAtMs: 2 }, calls: [row, row, toCallRow(call(8))], conversation });
  await db.write(openTurn, { turn: { ...turn, id: 'tn_3', model: 'p/m', reservedNano: 500 } });
  await db.write(openTurn, { turn: { ...turn, id: 'tn_4', model: 'p/m', reservedNano: 500 } });
  await endBoot(db, 'boot');
  const made = [
    noted(turnId, [call(7), call(7), call(8)]),
    { ...noted('tn_2', [call(9), call(9)]), turn: asBegun },
    noted('tn_3', [call(100)]),
    noted('tn_4', [call(100)], true),
    noted('tn_5', [{ ...call(1), startedAtMs: 4 }]),
  ];
  expect((await db.write(abortOpenTurns, { atMs: 9, made, keptSinceMs: startedAtMs + 4 })).ended).toBe(2);
  const after = await db.read(spent, undefined);
  expect(after.calls.map((one) => Object.values(one).join(' '))).toEqual([
    ...[7, 7, 8].map((nano) => `tn_1 cv_1 p m interactive ok ${nano}`),
    ...[9, 9].map((nano) => `tn_2 cv_1 p m interactive ok ${nano}`),
    'tn_3 cv_1 p m interactive ok 100',
    'tn_4 cv_1 p m interactive ok 100',
    'tn_4 cv_1 p m interactive error 400',
  ]);
  expect(after.turns).toMatchObject([
    { costNano: null },
    // Reports by a session key find its calls.
    { id: 'tn_2', costNano: 18, reservedNano: null },
    { id: 'tn_3', costNano: 100, reservedNano: null },
    { id: 'tn_4', costNano: 500, reservedNano: null },
  ]);
  expect(after.conversations).toEqual([{ ref: 'cv_1', inputTokens: 1 + 18 + 200, costNano: 18 + 100 + 500 }]);
  await db.write(abortOpenTurns, { atMs: 10, made, keptSinceMs: 5 });
  expect(await db.read(spent, undefined)).toEqual(after);
});

test('a reserve alone stores no rows of the caller; a once-only call does, and the reserve stays', async () => {
  const start = {
    id: 'tn_1',
    conversationRef: 'cv_1',
    sessionKey: 'a:b',
    agentId: 'default',
    principalId: 'root',
    origin: 'api' as const,
    traceId: '0'.repeat(32),
    startedAtMs: 1,
    bootId: 'boot',
  };
  const row = new OpenRow({ db, openTurn, background: { markCall: () => expect.unreachable() } }, start, {
    opened: () => [toCall(keepReceipt, receipt)],
  });
  await row.reserve(500, 'p/m');
  expect(await db.read(counts, undefined)).toMatchObject({ turn: 1, receipt: 0 });
  await row.beforeOnce([]);
  expect(await db.read(counts, undefined)).toMatchObject({ turn: 1, receipt: 1 });
  expect(await db.read(spent, undefined)).toMatchObject({ turns: [{ state: 'running', reservedNano: 500 }] });
  await row.reserve(900, 'p/m');
  expect(await db.read(spent, undefined)).toMatchObject({ turns: [{ state: 'running', reservedNano: 900 }] });
});

test('a turn that ends has its cost and no reserve', async () => {
  await db.write(openTurn, { turn: { ...turn, reservedNano: 500 } });
  await db.write(commitTurn, { turn: { ...turn, state: 'completed', costNano: 20, endedAtMs: 2 }, calls: [], conversation: null });
  expect(await db.read(spent, undefined)).toMatchObject({ turns: [{ state: 'completed', costNano: 20, reservedNano: null }] });
});

test('background work is charged to its conversation while there is one, and leaves no separate row', async () => {
  await db.write(commitTurn, { turn: { ...turn, state: 'completed', endedAtMs: 2 }, calls: [], conversation });
  const work = { id: 'wk_1', agentId: 'default', principalId: 'root', conversationRef: 'cv_1' };
  const call = {
    provider: 'p',
    modelId: 'm',
    operation: 'compaction',
    usage: { input: 30, output: 4, cacheRead: 0, cacheWrite: 0, estimated: false },
    cost: { input: 60, output: 8, cacheRead: 0, cacheWrite: 0 },
    savedNano: 0,
    latencyMs: 1.6,
    startedAtMs: 5,
    outcome: 'ok',
  } as const;
  const opening = {
    ...work,
    operation: 'compaction',
    model: 'p/m',
    reservedNano: 900,
    traceId: '0'.repeat(32),
    startedAtMs: 4,
    bootId: 'boot',
  } as const;
  await db.write(openWork, opening);
  await db.write(bookWork, { ...work, opened: true, calls: [call, { ...call, outcome: 'error', cost: null, savedNano: null }] });
  await db.write(bookWork, { ...work, id: 'wk_2', conversationRef: 'cv_gone', opened: false, calls: [call] });
  await db.write(openWork, { ...opening, id: 'wk_3' });
  await endBoot(db, 'boot');
  expect((await db.write(abortOpenTurns, { atMs: 9 })).ended).toBe(0);
  expect(await db.read(spent, undefined)).toMatchObject({
    calls: [
      { turnId: 'wk_1', conversationRef: 'cv_1', operation: 'compaction', outcome: 'ok', costNano: 68 },
      { turnId: 'wk_1', conversationRef: 'cv_1', operation: 'compaction', outcome: 'error', costNano: null },
      { turnId: 'wk_2', conversationRef: null, costNano: 68 },
      { turnId: 'wk_3', conversationRef: 'cv_1', operation: 'compaction', outcome: 'error', costNano: 900 },
    ],
    turns: [{ id: 'tn_1' }],
    conversations: [{ ref: 'cv_1', inputTokens: 61, costNano: 968 }],
  });
});

test('what a frozen daemon writes after another one has claimed it is refused, and what it spent is charged once', async () => {
  const call = {
    provider: 'p',
    model: 'm',
    operation: 'interactive',
    outcome: 'ok' as const,
    inputTokens: 3,
    outputTokens: 4,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    estimated: false,
    costNano: 70,
    savedNano: null,
    latencyMs: 1,
    responseId: null,
    atMs: 5,
  };
  const work = { id: 'wk_1', agentId: 'default', principalId: 'root', conversationRef: 'cv_1' };
  const opening = {
    ...work,
    operation: 'compaction',
    model: 'p/m',
    reservedNano: 900,
    traceId: '0'.repeat(32),
    startedAtMs: 4,
    bootId: 'boot',
  } as const;
  const ended = (id: string) => ({ turn: { ...turn, id, state: 'completed' as const, costNano: 70, endedAtMs: 9 }, calls: [call], conversation });
  await db.write(openTurn, { turn: { ...turn, model: 'p/m', reservedNano: 500 } });
  await db.write(openTurn, { turn: { ...turn, id: 'tn_2' } });
  await db.write(openWork, opening);
  await beginBoot(db, 'next');
  await db.write(openTurn, { turn: { ...turn, id: 'tn_next', bootId: 'next' } });
  await endBoot(db, 'boot');
  expect((await db.write(abortOpenTurns, { atMs: 8 })).ended).toBe(2);
  const refused = { created: false, isRefused: true };
  expect(await db.write(commitTurn, ended('tn_1'))).toEqual(refused);
  expect(await db.write(commitTurn, ended('tn_2'))).toEqual(refused);
  expect(await db.write(commitTurn, { ...ended('tn_3'), alongside: [toCall(keepReceipt, receipt)] })).toEqual(refused);
  await expect(db.write(openTurn, { turn: { ...turn, id: 'tn_4' } })).rejects.toMatchObject({ code: 'unavailable' });
  await expect(db.write(reserveForTurn, { id: 'tn_2', reservedNano: 9, model: 'p/m' })).rejects.toMatchObject({ code: 'unavailable' });
  await db.write(bookWork, { ...work, opened: true, calls: [] });
  expect(await db.read(counts, undefined)).toEqual({ turn: 3, receipt: 0, response: 0, message: 0 });
  expect(await db.read(spent, undefined)).toMatchObject({
    calls: [
      { turnId: 'tn_1', outcome: 'error', costNano: 500 },
      { turnId: 'wk_1', outcome: 'error', costNano: 900 },
      { turnId: 'tn_2', outcome: 'ok', costNano: 70 },
      { turnId: 'tn_3', outcome: 'ok', costNano: 70 },
    ],
    turns: [
      { id: 'tn_1', state: 'aborted', costNano: 500 },
      { id: 'tn_2', state: 'aborted', costNano: null },
      { id: 'tn_next', state: 'running' },
    ],
    conversations: [],
  });
  expect((await db.write(abortOpenTurns, { atMs: 9 })).ended).toBe(0);
});
