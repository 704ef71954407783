import { onPostgres } from '@gatehouse/testkit/sql';
import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveVirtualWeek } from './r40-virtual-week.ts';

const seed = freshSeed();
const chargedAgain = /the turn \S+ charged [2-9] times/;

test.skipIf(onPostgres)('days of jobs, webhooks, chats and heartbeats with all kinds of faults have each effect once', async () => {
  const { wrong, ...report } = await proveVirtualWeek({ seeds: [seed], daysOf: () => 1 });
  expect(wrong, `seed ${seed}`).toEqual([]);
  expect(report.occurrences, `seed ${seed}`).toBeGreaterThan(12);
  expect(report.orders, `seed ${seed}`).toBeGreaterThan(2);
});

test.skipIf(onPostgres)(
  'builds that forget times, or repeat what runs once, are caught',
  async () => {
    const missed = await proveVirtualWeek({ seeds: [seed], daysOf: () => 0.5, broken: 'next-run-only' });
    expect(missed.wrong.join('\n'), `seed ${seed}`).toMatch(/has 0 rows/);
    // The crash must come between an effect that runs once and its result, which most seeds produce.
    let again = '';
    for (let one = seed; !chargedAgain.test(again) && one < seed + 12; one += 1)
      again += (await proveVirtualWeek({ seeds: [one], daysOf: () => 0.5, broken: 'missing-intent' })).wrong.join('\n');
    expect(again, `seed ${seed}`).toMatch(chargedAgain);
  },
  240_000,
);
