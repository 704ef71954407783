import { createStepClock } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { openInlineDb } from '../../../kernel/db/sqlite/inline.ts';
import { silentLog } from '../../../kernel/log.ts';
import { ageClockMigrations } from './migrations.ts';
import { ageClockOperations } from './store.ts';
import { createAgeClock } from './age-clock.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const yearsMs = 1095 * dayMs;
const startMs = Date.UTC(2026, 8, 21, 12);

/** Uses one home; each start has a separate clock. */
async function openHome() {
  const db = await openInlineDb({ migrations: ageClockMigrations, operations: ageClockOperations });
  return {
    /** Returns the time for ages, in hours since the beginning, at the start and after running for `hours`. */
    async start(atMs: number, hours: number, stepMs = 0) {
      const base = createStepClock(atMs);
      await using clock = await createAgeClock({ db, clock: base, log: silentLog });
      const age = () => (clock.ageNow() - startMs) / hourMs;
      const begun = age();
      base.step(stepMs);
      base.advance(hours * hourMs);
      return { ages: [begun, age()], doubt: clock.doubt() };
    },
    [Symbol.asyncDispose]: () => db[Symbol.asyncDispose](),
  };
}

test('ages follow the clock while it is at most a week off', async () => {
  await using home = await openHome();
  expect(await home.start(startMs, 240)).toEqual({ ages: [0, 240], doubt: undefined });
  expect((await home.start(startMs + 263 * hourMs, 1)).ages).toEqual([263, 264]);
  expect((await home.start(startMs + 260 * hourMs, 1, -5 * hourMs)).ages).toEqual([260, 256]);
});

test('under a clock that is years ahead, ages grow with the running time, over restarts too, without a trace once the clock is right', async () => {
  await using home = await openHome();
  await home.start(startMs, 10);
  const { ages, doubt } = await home.start(startMs + yearsMs, 5);
  expect(ages).toEqual([10, 15]);
  expect(doubt).toContain('The clock shows 2029-09-20T17:00Z, 1094 days later than expected from when the daemon last ran (2026-09-22T03:00Z)');
  expect((await home.start(startMs + yearsMs + 5 * hourMs, 5)).ages).toEqual([15, 20]);
  expect(await home.start(startMs + 21 * hourMs, 80)).toEqual({ ages: [21, 101], doubt: undefined });
  expect((await home.start(startMs + 102 * hourMs, 5, yearsMs)).ages).toEqual([102, 107]);
});

test('under a clock that is years behind, ages are those of the clock, and are not delayed afterwards', async () => {
  await using home = await openHome();
  await home.start(startMs, 10);
  const behind = await home.start(startMs - yearsMs, 5);
  expect(behind.ages).toEqual([-26_280, -26_275]);
  expect(behind.doubt).toContain('days earlier than expected');
  expect(await home.start(startMs + 16 * hourMs, 1)).toEqual({ ages: [16, 17], doubt: undefined });
});

test('a leap is trusted once the daemon has run for three days with it: a machine may have been off for long', async () => {
  await using home = await openHome();
  await home.start(startMs, 10);
  const awayMs = startMs + 60 * dayMs;
  expect((await home.start(awayMs, 40)).ages).toEqual([10, 50]);
  expect((await home.start(awayMs + 41 * hourMs, 31)).ages).toEqual([50, 81]);
  expect(await home.start(awayMs + 73 * hourMs, 2)).toEqual({ ages: [81, 1515], doubt: undefined });
  expect((await home.start(awayMs + 76 * hourMs, 1)).ages).toEqual([1516, 1517]);
});
