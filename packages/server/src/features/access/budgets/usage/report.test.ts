import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { recordCalls } from '../../../conversations/turns/store.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import { operation, raw } from '../../../../kernel/db/operation.ts';
import { openInlineDb } from '../../../../kernel/db/sqlite/inline.ts';
import { turnMigrations } from '../../../conversations/turns/migrations.ts';
import { daysOf } from './days.ts';
import { budgetMigrations } from '../migrations.ts';
import { pruneCalls, usagePastOperations } from './past-store.ts';
import { budgetOperations, rollUp, type UsageKey, type UsageQuery, usageReport } from '../store.ts';

interface Call {
  readonly atMs: number;
  readonly agentId?: string;
  readonly principalId?: string;
  readonly model?: string;
  readonly conversationRef?: string;
  readonly costNano?: number | null;
}

const insert = operation('test.insert', async (tx, calls: readonly Call[]): Promise<void> => {
  for (const { atMs, agentId = 'a', principalId = 'p', model = 'm', conversationRef = null, costNano = 7 } of calls)
    await recordCalls(tx, { turnId: 't', agentId, principalId, conversationRef }, [
      {
        provider: 'x',
        model,
        operation: 'interactive',
        outcome: 'ok',
        inputTokens: 10,
        outputTokens: 3,
        cacheReadTokens: 2,
        cacheWriteTokens: 1,
        estimated: false,
        costNano,
        savedNano: costNano === null ? null : 1,
        latencyMs: 1,
        responseId: null,
        atMs,
      },
    ]);
});

/** Moves the id of the newest call below all others, like that of a writer that took it first and committed last. */
const lowerIds = operation('test.lowerIds', (tx) =>
  tx.build((from, sql) =>
    from
      .updateTable('modelCall')
      .set({ id: sql<number>`-id` })
      .where(sql<boolean>`id = (select max(id) from model_call)`),
  ),
);

/** Makes the sums of days as the migration does that introduces them. */
const upgrade = operation('test.upgrade', async (tx): Promise<void> => {
  const [, fill = ''] = budgetMigrations.find(({ id }) => id === '202-usage-days')?.up ?? [];
  await tx.build((from) => from.deleteFrom('usageDay'));
  await tx.build((from, sql) => raw(from, sql`${sql.raw(fill)}`));
});

const slots = operation('test.slots', (tx) =>
  tx.build<object>((from) => from.selectFrom('usageSlot').select(['principalId', 'slotMs', 'calls']).orderBy('principalId')),
);

let db: Db;
beforeEach(async () => {
  db = await openInlineDb({
    operations: [...budgetOperations, ...usagePastOperations, insert, lowerIds, slots, upgrade],
    migrations: [...turnMigrations, ...budgetMigrations],
  });
});
afterEach(() => db[Symbol.asyncDispose]());

function report(groupBy: readonly UsageKey[], over: Partial<UsageQuery> = {}) {
  return db.read(usageReport, { ranges: [{ name: '', fromMs: 0, toMs: 1e14 }], groupBy, principalId: null, agentIds: null, limit: 100, ...over });
}

const at = (text: string) => Temporal.Instant.from(text).epochMilliseconds;

describe('days', () => {
  test('have 23 and 25 hours at DST changes, and are clipped to the range', () => {
    const hours = (from: string, to: string, zone: string) =>
      daysOf(at(from), at(to), zone).map(({ name, fromMs, toMs }) => `${name} ${(toMs - fromMs) / 3_600_000}`);
    expect(hours('2026-03-28T12:00:00Z', '2026-03-30T10:00:00Z', 'Europe/Berlin')).toEqual(['2026-03-28 11', '2026-03-29 23', '2026-03-30 12']);
    expect(hours('2026-10-24T22:00:00Z', '2026-10-26T23:00:00Z', 'Europe/Berlin')).toEqual(['2026-10-25 25', '2026-10-26 24']);
    // Midnight does not exist where the clocks go forward at midnight.
    expect(hours('2026-09-05T04:00:00Z', '2026-09-07T03:00:00Z', 'America/Santiago')).toEqual(['2026-09-05 24', '2026-09-06 23']);
  });

  test('count each call once, whatever the zone, in slots and in rows', async () => {
    const zones = ['Europe/Berlin', 'Asia/Kathmandu', 'America/Santiago', 'Australia/Lord_Howe', 'UTC'];
    const calls: Call[] = [];
    for (let atMs = at('2026-10-23T00:07:00Z'); atMs < at('2026-10-27T00:00:00Z'); atMs += 7 * 60_000) calls.push({ atMs });
    await db.write(insert, calls);
    const [fromMs, toMs] = [at('2026-10-23T10:01:00Z'), at('2026-10-26T21:59:00Z')];
    const within = calls.filter(({ atMs }) => atMs >= fromMs && atMs < toMs);
    const expected = (zone: string) =>
      Object.entries(
        Object.groupBy(within, ({ atMs }) => Temporal.Instant.fromEpochMilliseconds(atMs).toZonedDateTimeISO(zone).toPlainDate().toString()),
      ).map(([day, of]) => [day, of?.length]);
    for (const rolled of [0, 100, 1000]) {
      if (rolled > 0) await db.write(rollUp, { limit: rolled });
      for (const zone of zones) {
        const { rows, totals } = await report(['day'], { ranges: daysOf(fromMs, toMs, zone) });
        expect(rows.map((row) => [row.key1, row.calls])).toEqual(expected(zone));
        expect(totals.calls).toBe(within.length);
      }
    }
  });
});

describe('a report', () => {
  test('groups by one key or two, the most expensive first, with sums of unpriced calls', async () => {
    await db.write(insert, [
      { atMs: 1, agentId: 'a', model: 'm' },
      { atMs: 2, agentId: 'a', model: 'n', costNano: 100 },
      { atMs: 3, agentId: 'b', model: 'm', costNano: null },
    ]);
    const { rows, totals, groups } = await report(['agent', 'model']);
    expect(rows).toMatchObject([
      { key1: 'a', key2: 'x/n', calls: 1, costNano: 100, unpriced: 0 },
      { key1: 'a', key2: 'x/m', calls: 1, costNano: 7, unpriced: 0 },
      { key1: 'b', key2: 'x/m', calls: 1, costNano: 0, unpriced: 1 },
    ]);
    expect([totals, groups]).toEqual([
      {
        calls: 3,
        inputTokens: 30,
        outputTokens: 9,
        cacheReadTokens: 6,
        cacheWriteTokens: 3,
        costNano: 107,
        savedNano: 2,
        unpriced: 1,
      },
      3,
    ]);
    const cut = await report(['agent', 'model'], { limit: 1 });
    expect([cut.rows.length, cut.groups, cut.totals]).toEqual([1, 3, totals]);
    expect((await report(['day'], { ranges: [] })).totals.calls).toBe(0);
  });

  test('can be limited to one principal and some agents, before and after the roll-up', async () => {
    await db.write(insert, [
      { atMs: 1_000_000, principalId: 'p', agentId: 'a', conversationRef: 'cv_1' },
      { atMs: 1_000_000, principalId: 'q', agentId: 'a', conversationRef: 'cv_2' },
      { atMs: 1_000_000, principalId: 'p', agentId: 'b' },
    ]);
    for (const _ of [1, 2]) {
      expect((await report(['agent'], { principalId: 'p' })).rows.map((row) => [row.key1, row.calls])).toEqual([
        ['a', 1],
        ['b', 1],
      ]);
      expect((await report(['provider'], { agentIds: ['a'] })).totals.calls).toBe(2);
      expect((await report(['operation'], { agentIds: [] })).totals.calls).toBe(0);
      expect((await report(['conversation'], { principalId: 'p' })).rows.map((row) => row.key1)).toEqual([null, 'cv_1']);
      await db.write(rollUp, { limit: 100 });
    }
  });

  test('counts a call that becomes visible after others with higher ids', async () => {
    await db.write(insert, [{ atMs: 900_000 }, { atMs: 900_001 }]);
    await db.write(rollUp, { limit: 10 });
    await db.write(insert, [{ atMs: 900_002 }]);
    await db.write(lowerIds, undefined);
    expect((await report(['agent'])).totals.calls).toBe(3);
    await db.write(rollUp, { limit: 10 });
    expect((await report(['agent'])).totals.calls).toBe(3);
    expect(await db.read(slots, undefined)).toMatchObject([{ calls: 3 }, { calls: 3 }]);
  });

  test('counts a call that is rolled up in two steps once', async () => {
    await db.write(
      insert,
      Array.from({ length: 25 }, (_, n) => ({ atMs: 900_000 + n })),
    );
    expect(await db.write(rollUp, { limit: 10 })).toBe(true);
    expect(await db.write(rollUp, { limit: 10 })).toBe(true);
    expect((await report(['agent'])).totals).toMatchObject({ calls: 25, costNano: 175 });
    expect(await db.write(rollUp, { limit: 10 })).toBe(false);
    expect(await db.write(rollUp, { limit: 10 })).toBe(false);
    // An hour is one row for everybody and one for the principal.
    expect(await db.read(slots, undefined)).toEqual([
      { principalId: '', slotMs: 0, calls: 25 },
      { principalId: 'p', slotMs: 0, calls: 25 },
    ]);
    expect((await report(['agent'])).totals).toMatchObject({ calls: 25, costNano: 175 });
    expect((await report(['model'], { ranges: [{ name: '', fromMs: 900_003, toMs: 900_007 }] })).totals.calls).toBe(4);
  });

  test('has the sums of days after an upgrade', async () => {
    await db.write(insert, [
      { atMs: at('2026-10-23T23:59:59Z') },
      { atMs: at('2026-10-24T00:00:00Z') },
      { atMs: at('2026-10-24T13:00:00Z'), agentId: 'b' },
    ]);
    await db.write(rollUp, { limit: 10 });
    const before = await report(['agent']);
    expect(before.totals).toMatchObject({ calls: 3, costNano: 21 });
    await db.write(upgrade, undefined);
    expect(await report(['agent'])).toEqual(before);
  });

  test('stays the same when old calls are deleted, whatever the zone and the groups', async () => {
    const [fromMs, toMs] = [at('2026-10-23T10:15:00Z'), at('2026-10-26T21:45:00Z')];
    const calls: Call[] = [];
    for (let [atMs, n] = [at('2026-10-23T00:07:00Z'), 0]; atMs < at('2026-10-27T00:00:00Z'); atMs += 13 * 60_000, n += 1)
      calls.push({
        atMs,
        principalId: `p${n % 2}`,
        agentId: `a${n % 3}`,
        ...(n % 5 > 0 && { conversationRef: `cv_${n % 7}` }),
        costNano: n % 11 === 0 ? null : 1_000_000_007 + n,
      });
    await db.write(insert, calls);
    for (const limit of [100, 100, 100]) await db.write(rollUp, { limit });
    const reports = async () => {
      const found: unknown[] = [];
      for (const zone of ['UTC', 'Asia/Kathmandu', 'Australia/Lord_Howe'])
        for (const groupBy of [['day'], ['day', 'conversation'], ['agent', 'model'], ['conversation']] as const)
          for (const only of [{}, { principalId: 'p1' }, { agentIds: ['a0', 'a2'] }])
            found.push(await report(groupBy, { ranges: daysOf(fromMs, toMs, zone), ...only }));
      return found;
    };
    const before = await reports();
    const beforeMs = at('2026-10-26T03:00:00Z');
    const deleted: number[] = [];
    for (let count = 64; count === 64;) deleted.push((count = await db.write(pruneCalls, { beforeMs, limit: 64 })));
    // Those that are not in the slots yet are kept.
    expect(deleted).toEqual([64, 64, 64, 64, 44]);
    expect(await reports()).toEqual(before);
    while (await db.write(rollUp, { limit: 100 }));
    while ((await db.write(pruneCalls, { beforeMs: 1e14, limit: 100 })) > 0);
    expect(await reports()).toEqual(before);
  });
});
