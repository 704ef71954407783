import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Db } from '../../../../kernel/db/db.ts';
import { operation } from '../../../../kernel/db/operation.ts';
import { openInlineDb } from '../../../../kernel/db/sqlite/inline.ts';
import { keepDerived, memoryDeriveOperations, readRaw, readUnexamined, markExamined, strengthenDerived } from './review/derive-store.ts';
import { memoryLifeMigrations } from './life-migrations.ts';
import { applyLifecycle, countUses, memoryLifeOperations, readLifePage } from './life-store.ts';
import { memoryMigrations } from '../migrations.ts';
import { forgetConversationMemories, insertMemory, type MemoryInput, removeMemory } from '../entries/store.ts';

const insert = operation('test.insert', async (tx, rows: readonly MemoryInput[]): Promise<void> => {
  for (const row of rows) await insertMemory(tx, row);
});
const forget = operation('test.forget', forgetConversationMemories);
const remove = operation('test.remove', async (tx, { id }: { readonly id: string }) => removeMemory(tx, id));
const state = operation('test.state', async (tx, _: object) =>
  tx.build<{ id: string; type: string; proof: number; folded: number; uses: number; failures: number; confidence: number | null; citations: number }>(
    (db, sql) =>
      db
        .selectFrom('memory')
        .select([
          'id',
          'memoryType as type',
          'proofCount as proof',
          sql<number>`consolidated_at_ms is not null`.as('folded'),
          'useCount as uses',
          'failureCount as failures',
          'confidence',
          sql<number>`(SELECT count(*) FROM memory_source WHERE derived_id = memory.id)`.as('citations'),
        ])
        .orderBy('seq'),
  ),
);
const leftovers = operation('test.leftovers', async (tx, _: object) =>
  tx.build<{ n: number }>((db, sql) =>
    db
      .selectFrom('memoryDemotion')
      .select(sql<number>`count(*)`.as('n'))
      .where('seq', 'not in', db.selectFrom('memory').select('seq')),
  ),
);

const row = (id: string, changes: Partial<MemoryInput> = {}): MemoryInput => ({
  id,
  agentId: 'default',
  principalId: 'token:ada',
  content: `memory ${id}`,
  memoryType: 'semantic',
  trustLevel: 'learned',
  taintLevel: 'clean',
  sourceWho: 'default',
  sourceChannel: null,
  conversationRef: null,
  sessionKey: null,
  tags: '[]',
  createdAtMs: 1000,
  expiresAtMs: null,
  confidence: null,
  pinned: 0,
  cites: [],
  ...changes,
});

let db: Db;
beforeEach(async () => {
  db = await openInlineDb({
    migrations: [...memoryMigrations.filter(({ database }) => database !== 'telemetry'), ...memoryLifeMigrations],
    operations: [...memoryLifeOperations, ...memoryDeriveOperations, insert, forget, remove, state, leftovers],
  });
});
afterEach(() => db[Symbol.asyncDispose]());
const rows = () => db.read(state, {});
const ids = async () => (await rows()).map(({ id }) => id);

describe('uses', () => {
  test('are added up, and only on memories that exist', async () => {
    await db.write(insert, [row('a'), row('b')]);
    const count = (id: string, uses: number, failures: number) => ({ id, agentId: 'default', uses, failures, atMs: 5000 });
    expect(await db.write(countUses, { counts: [count('a', 2, 1), count('gone', 1, 1)] })).toEqual(['a']);
    expect(await db.write(countUses, { counts: [count('a', 1, 0)] })).toEqual(['a']);
    expect(await rows()).toMatchObject([
      { id: 'a', uses: 3, failures: 1 },
      { id: 'b', uses: 0 },
    ]);
    const { rows: life } = await db.read(readLifePage, { agentId: 'default', afterSeq: 0, limit: 10 });
    expect(life[0]).toMatchObject({ id: 'a', lastUsedAtMs: 5000, useCount: 3, explicit: false, pinned: false, demotedAtMs: null });
  });
});

describe('a plan', () => {
  test('is carried out, except for entries pinned or used since', async () => {
    await db.write(insert, [
      row('up'),
      row('down'),
      row('bad'),
      row('out'),
      row('used'),
      row('over'),
      row('pinned', { pinned: 1 }),
      row('system', { trustLevel: 'system' }),
    ]);
    await db.write(countUses, { counts: ['used', 'over'].map((id) => ({ id, agentId: 'default', uses: 1, failures: 0, atMs: 9000 })) });
    const counts = await db.write(applyLifecycle, {
      plannedAtMs: 8000,
      actions: [
        { kind: 'promote', id: 'up', to: 'episodic', reason: 'used' },
        { kind: 'demote', id: 'down', reason: 'faded' },
        { kind: 'demote', id: 'bad', reason: 'failures' },
        { kind: 'evict', id: 'out', reason: 'faded' },
        { kind: 'evict', id: 'used', reason: 'too_many' },
        { kind: 'evict', id: 'over', reason: 'expired' },
        { kind: 'evict', id: 'pinned', reason: 'expired' },
        { kind: 'demote', id: 'system', reason: 'faded' },
        { kind: 'evict', id: 'system', reason: 'expired' },
        { kind: 'evict', id: 'nobody', reason: 'expired' },
      ],
    });
    expect(counts).toEqual({ promoted: 1, demoted: 2, evicted: 2 });
    expect(await rows()).toMatchObject([
      { id: 'up', type: 'episodic' },
      { id: 'down', type: 'working', confidence: null },
      { id: 'bad', type: 'working', confidence: 0.2 },
      { id: 'used' },
      { id: 'pinned', type: 'semantic' },
      { id: 'system', type: 'semantic' },
    ]);
    const { rows: life } = await db.read(readLifePage, { agentId: 'default', afterSeq: 0, limit: 100 });
    expect(life.filter(({ demotedAtMs }) => demotedAtMs === 8000).map(({ id }) => id)).toEqual(['down', 'bad']);
    await db.write(applyLifecycle, {
      plannedAtMs: 9000,
      actions: [
        { kind: 'promote', id: 'down', to: 'semantic', reason: 'used' },
        { kind: 'evict', id: 'bad', reason: 'faded' },
      ],
    });
    expect((await db.read(readLifePage, { agentId: 'default', afterSeq: 0, limit: 100 })).rows.every(({ demotedAtMs }) => demotedAtMs === null)).toBe(
      true,
    );
    expect(await db.read(leftovers, {})).toEqual([{ n: 0 }]);
  });

  test('never promotes entries from outside', async () => {
    await db.write(insert, [row('a', { trustLevel: 'external', memoryType: 'working' })]);
    expect(await db.write(applyLifecycle, { plannedAtMs: 1, actions: [{ kind: 'promote', id: 'a', to: 'semantic', reason: 'used' }] })).toEqual({
      promoted: 0,
      demoted: 0,
      evicted: 0,
    });
  });

  test('is read page by page, of one agent', async () => {
    await db.write(insert, [row('a'), row('x', { agentId: 'other' }), row('b'), row('c', { sourceWho: 'operator' })]);
    const first = await db.read(readLifePage, { agentId: 'default', afterSeq: 0, limit: 2 });
    expect(first).toMatchObject({ rows: [{ id: 'a' }, { id: 'b' }], nextSeq: 3 });
    expect(await db.read(readLifePage, { agentId: 'default', afterSeq: 3, limit: 2 })).toMatchObject({
      rows: [{ id: 'c', explicit: true }],
      nextSeq: null,
    });
  });
});

describe('a derived memory', () => {
  const derived = row('d', {
    cites: [
      { sourceId: 'a', conversationRef: 'cv_1' },
      { sourceId: 'b', conversationRef: 'cv_2' },
    ],
    confidence: 0.75,
  });
  const derive = () => db.write(keepDerived, { memory: derived, sourceIds: ['a', 'b'], atMs: 2000 });
  beforeEach(() =>
    db.write(insert, [row('a', { conversationRef: 'cv_1' }), row('b', { conversationRef: 'cv_2' }), row('c', { conversationRef: 'cv_1' })]),
  );

  test('absorbs its sources, once', async () => {
    expect(await derive()).toBe(true);
    expect(await rows()).toMatchObject([
      { id: 'a', folded: 1 },
      { id: 'b', folded: 1 },
      { id: 'c', folded: 0 },
      { id: 'd', proof: 2, citations: 2 },
    ]);
    expect(await db.read(readRaw, { agentId: 'default', ids: ['a', 'c', 'd', 'none'] })).toMatchObject([{ id: 'c' }]);
    expect(await db.write(keepDerived, { memory: { ...derived, id: 'e' }, sourceIds: ['a', 'c'], atMs: 2000 })).toBe(false);
    expect(await ids()).toEqual(['a', 'b', 'c', 'd']);
  });

  test('is not created when a source is gone', async () => {
    await db.write(remove, { id: 'b' });
    expect(await derive()).toBe(false);
    expect(await rows()).toMatchObject([{ id: 'a', folded: 0 }, { id: 'c' }]);
  });

  test('gains a proof', async () => {
    await derive();
    expect(await db.write(strengthenDerived, { derivedId: 'd', source: { id: 'c', conversationRef: 'cv_1' }, atMs: 3000 })).toBe(true);
    expect((await rows()).at(-1)).toMatchObject({ id: 'd', proof: 3, citations: 3, confidence: 0.875 });
    expect(await db.write(strengthenDerived, { derivedId: 'd', source: { id: 'c', conversationRef: 'cv_1' }, atMs: 3000 })).toBe(false);
    expect(await db.write(strengthenDerived, { derivedId: 'a', source: { id: 'c', conversationRef: 'cv_1' }, atMs: 3000 })).toBe(false);
  });

  test('loses the proofs of a conversation that is forgotten', async () => {
    await derive();
    expect(await db.write(forget, { conversationRef: 'cv_1', purgeDerived: false })).toEqual({
      memoriesDeleted: 2,
      derivedDeleted: 0,
      derivedUnlinked: 1,
    });
    expect(await rows()).toMatchObject([{ id: 'b' }, { id: 'd', proof: 1, citations: 1 }]);
  });

  test('is deleted with its last proof', async () => {
    await derive();
    await db.write(forget, { conversationRef: 'cv_1', purgeDerived: false });
    expect(await db.write(forget, { conversationRef: 'cv_2', purgeDerived: false })).toEqual({
      memoriesDeleted: 1,
      derivedDeleted: 1,
      derivedUnlinked: 0,
    });
    expect(await ids()).toEqual([]);
  });

  test('is deleted entirely when it is purged, even if it has other sources', async () => {
    await derive();
    expect(await db.write(forget, { conversationRef: 'cv_1', purgeDerived: true })).toEqual({
      memoriesDeleted: 2,
      derivedDeleted: 1,
      derivedUnlinked: 0,
    });
    expect(await ids()).toEqual(['b']);
  });

  test('loses a proof when one of its sources is deleted, and is deleted with the last', async () => {
    await derive();
    expect(await db.write(remove, { id: 'a' })).toBe(true);
    expect((await rows()).at(-1)).toMatchObject({ id: 'd', proof: 1, citations: 1 });
    await db.write(remove, { id: 'b' });
    expect(await ids()).toEqual(['c']);
  });

  test('outlives the eviction of its sources, and is still found by the conversation', async () => {
    await derive();
    await db.write(applyLifecycle, { plannedAtMs: 9000, actions: ['a', 'b'].map((id) => ({ kind: 'evict', id, reason: 'too_many' }) as const) });
    expect((await rows()).at(-1)).toMatchObject({ id: 'd', proof: 2, citations: 2 });
    expect(await db.write(forget, { conversationRef: 'cv_1', purgeDerived: true })).toMatchObject({ derivedDeleted: 1 });
    expect(await ids()).toEqual([]);
  });
});

test('only entries that were not compared yet are compared: no system, pinned, expiring, derived or operator entries', async () => {
  await db.write(insert, [
    row('a'),
    row('system', { trustLevel: 'system' }),
    row('pinned', { pinned: 1 }),
    row('expiring', { expiresAtMs: 5 }),
    row('stated', { sourceWho: 'operator' }),
    row('derived', { cites: [{ conversationRef: 'cv_1' }] }),
    row('other', { agentId: 'other' }),
    row('b'),
  ]);
  const waiting = await db.read(readUnexamined, { agentId: 'default', limit: 10 });
  expect(waiting.map(({ id }) => id)).toEqual(['a', 'b']);
  await db.write(markExamined, { agentId: 'default', seq: waiting[0]?.seq ?? 0, atMs: 1 });
  expect(await db.read(readUnexamined, { agentId: 'default', limit: 10 })).toMatchObject([{ id: 'b' }]);
});
