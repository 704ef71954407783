import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveClaimedOnce } from './r7-claimed-once.ts';

const seed = freshSeed();

test('of four processes that claim the same occurrences, and pause past their leases, one executes each', async () => {
  const { wrong, ...report } = await proveClaimedOnce({ jobs: 25, ticks: 8, seed });
  expect(wrong, `seed ${seed}`).toEqual([]);
  expect(report).toEqual({ occurrences: 200, executed: 200, stops: 8 });
});

test('a build that does not keep two claims of one time apart is caught', async () => {
  const { wrong } = await proveClaimedOnce({ jobs: 25, ticks: 4, seed, broken: 'no-unique-occurrence' });
  expect(wrong.join('\n'), `seed ${seed}`).toMatch(/was executed [2-9] times/);
});
