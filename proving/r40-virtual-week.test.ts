import { onPostgres } from '@gatehouse/testkit/sql';
import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveVirtualWeek } from './r40-virtual-week.ts';

const seed = freshSeed();

test.skipIf(onPostgres)('days of jobs, webhooks, chats and heartbeats with all kinds of faults have each effect once', async () => {
  const { wrong, ...report } = await proveVirtualWeek({ seeds: [seed], daysOf: () => 1 });
  expect(wrong, `seed ${seed}`).toEqual([]);
  expect(report.occurrences, `seed ${seed}`).toBeGreaterThan(12);
  expect(report.orders, `seed ${seed}`).toBeGreaterThan(2);
});
