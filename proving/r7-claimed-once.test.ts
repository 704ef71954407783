import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveClaimedOnce } from './r7-claimed-once.ts';

const seed = freshSeed();

test('of four processes that claim the same occurrences, and pause past their leases, one executes each', async () => {
  const { wrong, ...report } = await proveClaimedOnce({ jobs: 25, ticks: 8, seed });
  expect(wrong, `seed ${seed}`).toEqual([]);
  expect(report).toEqual({ occurrences: 200, executed: 200, stops: 8 });
});
