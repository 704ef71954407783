import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveMissed } from './r8-missed.ts';

const seed = freshSeed();

test('each time that passes while the daemon is down has a row, and the last one a run', async () => {
  const { wrong, missed } = await proveMissed({ jobs: 10, seed });
  expect(wrong, `seed ${seed}`).toEqual([]);
  expect(missed).toBeGreaterThan(20);
});

test('a build that only continues with the next time is caught', async () => {
  const { wrong } = await proveMissed({ jobs: 3, seed, broken: 'next-run-only' });
  expect(wrong.join('\n'), `seed ${seed}`).toMatch(/has 0 rows/);
});
