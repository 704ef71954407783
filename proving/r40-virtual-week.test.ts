import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveVirtualWeek } from './r40-virtual-week.ts';

const seed = freshSeed();

test('days of jobs, webhooks, chats and heartbeats with all kinds of faults have each effect once', async () => {
  const { wrong, ...report } = await proveVirtualWeek({ seeds: [seed, seed + 1], daysOf: () => 2 });
  expect(wrong, `seed ${seed}`).toEqual([]);
  expect(report.occurrences, `seed ${seed}`).toBeGreaterThan(60);
  expect(report.orders, `seed ${seed}`).toBeGreaterThan(10);
}, 120_000);

test('builds that forget times, or repeat what runs once, are caught', async () => {
  const missed = await proveVirtualWeek({ seeds: [seed], daysOf: () => 1, broken: 'next-run-only' });
  expect(missed.wrong.join('\n'), `seed ${seed}`).toMatch(/has 0 rows/);
  // The crash must come between an effect that runs once and its result, which not every seed produces.
  const again: string[] = [];
  for (let first = seed; again.length === 0 && first < seed + 12; first += 3)
    again.push(...(await proveVirtualWeek({ seeds: [first, first + 1, first + 2], daysOf: () => 1, broken: 'missing-intent' })).wrong);
  expect(again.join('\n'), `seed ${seed}`).toMatch(/the turn \S+ charged [2-9] times/);
}, 240_000);
