import { describe, expect, test } from 'vitest';
import { beginPlan, type LifeLimits, type LifeRow, planLifecycle, strengthOf } from './lifecycle-plan.ts';

const day = 86_400_000;
const now = 1_790_000_000_000;
const row = (changes: Partial<LifeRow>): LifeRow => ({
  id: 'a',
  memoryType: 'semantic',
  trustLevel: 'learned',
  createdAtMs: now - day,
  expiresAtMs: null,
  lastUsedAtMs: null,
  useCount: 0,
  failureCount: 0,
  proofCount: 0,
  confidence: null,
  consolidatedAtMs: null,
  demotedAtMs: null,
  pinned: false,
  explicit: false,
  ...changes,
});

const table: readonly (readonly [string, Partial<LifeRow>, LifeLimits, object | undefined])[] = [
  ['young and unused', {}, {}, undefined],
  ['expired', { expiresAtMs: now }, {}, { kind: 'evict', reason: 'expired' }],
  ['about to expire', { expiresAtMs: now + 1 }, {}, undefined],
  ['expired but pinned', { expiresAtMs: now - 1, pinned: true }, {}, undefined],
  ['expired but of the system', { expiresAtMs: now - 1, trustLevel: 'system' }, {}, undefined],
  ['as old as the limit', { createdAtMs: now - 30 * day, lastUsedAtMs: now }, { maxAgeDays: 30 }, { kind: 'evict', reason: 'too_old' }],
  ['younger than the limit', { createdAtMs: now - 30 * day + 1 }, { maxAgeDays: 30 }, undefined],
  ['working, used three times', { memoryType: 'working', useCount: 3, lastUsedAtMs: now }, {}, { kind: 'promote', to: 'episodic', reason: 'used' }],
  ['working, used ten times', { memoryType: 'working', useCount: 10, lastUsedAtMs: now }, {}, { kind: 'promote', to: 'semantic', reason: 'used' }],
  ['episodic, used ten times', { memoryType: 'episodic', useCount: 10, lastUsedAtMs: now }, {}, { kind: 'promote', to: 'semantic', reason: 'used' }],
  ['episodic, used nine times', { memoryType: 'episodic', useCount: 9, lastUsedAtMs: now }, {}, undefined],
  ['external and used', { memoryType: 'working', trustLevel: 'external', useCount: 50, lastUsedAtMs: now }, {}, undefined],
  ['working, forgotten', { memoryType: 'working', createdAtMs: now - 24 * day }, {}, { kind: 'evict', reason: 'faded' }],
  ['working, forgotten, but written by an operator', { memoryType: 'working', createdAtMs: now - 24 * day, explicit: true }, {}, undefined],
  ['episodic, forgotten', { memoryType: 'episodic', createdAtMs: now - 110 * day }, {}, { kind: 'demote', reason: 'faded' }],
  ['episodic, old but just used', { memoryType: 'episodic', createdAtMs: now - 110 * day, useCount: 1, lastUsedAtMs: now - day }, {}, undefined],
  ['semantic, forgotten', { createdAtMs: now - 700 * day }, {}, { kind: 'demote', reason: 'faded' }],
  ['semantic, forgotten but proved often', { createdAtMs: now - 700 * day, proofCount: 7 }, {}, undefined],
  ['turns fail with it', { useCount: 5, failureCount: 3, lastUsedAtMs: now }, {}, { kind: 'demote', reason: 'failures' }],
  ['turns fail with it now and then', { useCount: 20, failureCount: 3, lastUsedAtMs: now }, {}, undefined],
  [
    'an operator wrote it and turns fail with it',
    { useCount: 3, failureCount: 3, explicit: true, lastUsedAtMs: now },
    {},
    { kind: 'demote', reason: 'failures' },
  ],
  ['demoted a while ago', { memoryType: 'working', demotedAtMs: now - 29 * day, createdAtMs: now - 200 * day }, {}, undefined],
  [
    'demoted and never used again',
    { memoryType: 'working', demotedAtMs: now - 30 * day, createdAtMs: now - 200 * day },
    {},
    { kind: 'evict', reason: 'faded' },
  ],
  [
    'demoted and used again',
    { memoryType: 'working', demotedAtMs: now - 5 * day, useCount: 1, lastUsedAtMs: now - day },
    {},
    { kind: 'promote', to: 'episodic', reason: 'used' },
  ],
  [
    'demoted by failures and used again',
    { memoryType: 'working', demotedAtMs: now - 31 * day, useCount: 4, failureCount: 3, lastUsedAtMs: now - 30 * day },
    {},
    { kind: 'evict', reason: 'faded' },
  ],
  ['external, demoted and used again', { memoryType: 'working', trustLevel: 'external', demotedAtMs: now - day, lastUsedAtMs: now }, {}, undefined],
];

test.each(table)('%s', (_, changes, limits, action) => {
  expect(planLifecycle([row(changes)], now, limits).actions).toEqual(action === undefined ? [] : [{ id: 'a', ...action }]);
});

describe('a limit of entries', () => {
  const many = Array.from({ length: 10 }, (_, n) => row({ id: `m${n}`, createdAtMs: now - n * day }));
  const evicted = (rows: readonly LifeRow[], maxEntries: number) =>
    planLifecycle(rows, now, { maxEntries })
      .actions.filter(({ kind }) => kind === 'evict')
      .map(({ id }) => id);

  test('evicts the weakest', () => {
    expect(evicted(many, 8)).toEqual(['m9', 'm8']);
    expect(evicted(many, 10)).toEqual([]);
  });
  test('evicts entries folded into a derived one before the rest', () => {
    expect(evicted([...many, row({ id: 'folded', consolidatedAtMs: now })], 10)).toEqual(['folded']);
  });
  test('keeps entries of an operator to the last', () => {
    expect(evicted([...many, row({ id: 'stated', createdAtMs: now - 900 * day, explicit: true })], 1)).toEqual([
      'm9',
      'm8',
      'm7',
      'm6',
      'm5',
      'm4',
      'm3',
      'm2',
      'm1',
      'm0',
    ]);
  });
  test('never evicts pinned or system entries, and does not ask for more when only those are left', () => {
    const kept = [row({ id: 'p', pinned: true }), row({ id: 's', trustLevel: 'system' }), row({ id: 'x' })];
    expect(planLifecycle(kept, now, { maxEntries: 1 })).toMatchObject({ actions: [{ id: 'x', reason: 'too_many' }], more: false });
  });
  test('counts entries evicted for another reason, and plans one action for each entry', () => {
    const rows = [row({ id: 'old', expiresAtMs: now }), row({ id: 'up', memoryType: 'working', useCount: 3, createdAtMs: now - 5 * day })];
    expect(planLifecycle([...rows, row({ id: 'new', useCount: 9, lastUsedAtMs: now })], now, { maxEntries: 1 }).actions).toEqual([
      { kind: 'evict', id: 'old', reason: 'expired' },
      { kind: 'evict', id: 'up', reason: 'too_many' },
    ]);
  });
});

test('a plan is limited and says that there is more', () => {
  const rows = Array.from({ length: 10_001 }, (_, n) => row({ id: `m${n}`, expiresAtMs: 1 }));
  expect(planLifecycle(rows, now, {})).toMatchObject({ examined: 10_001, more: true, actions: { length: 10_000 } });
  const alive = Array.from({ length: 25_000 }, (_, n) => row({ id: `m${n}` }));
  expect(planLifecycle(alive, now, { maxEntries: 1 })).toMatchObject({ more: true, actions: { length: 2_000 } });
});

test('pages produce the same plan as the whole', () => {
  const rows = Array.from({ length: 500 }, (_, n) =>
    row({
      id: `m${n}`,
      createdAtMs: now - ((n * 7919) % 900) * day,
      useCount: n % 12,
      failureCount: n % 5,
      lastUsedAtMs: n % 3 === 0 ? now - n * day : null,
    }),
  );
  const paged = beginPlan(now, { maxEntries: 200 });
  for (let from = 0; from < rows.length; from += 7) paged.add(rows.slice(from, from + 7));
  expect(paged.end()).toEqual(planLifecycle(rows, now, { maxEntries: 200 }));
  expect(paged.end().actions.length).toBeGreaterThan(300);
});

test('strength falls with time, grows with uses and proofs and suffers from failures', () => {
  const base = strengthOf(row({}), now);
  expect(strengthOf(row({ createdAtMs: now - 100 * day }), now)).toBeLessThan(base);
  expect(strengthOf(row({ useCount: 3 }), now)).toBeGreaterThan(base);
  expect(strengthOf(row({ proofCount: 3 }), now)).toBeGreaterThan(base);
  expect(strengthOf(row({ failureCount: 1 }), now)).toBeLessThan(base);
  expect(strengthOf(row({ confidence: 0.5 }), now)).toBeLessThan(base);
  expect(strengthOf(row({ createdAtMs: now + day }), now)).toBe(1);
});
