import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveMissed } from './r8-missed.ts';

const seed = freshSeed();

test('each time that passes while the daemon is down has a row, and the last one a run', async () => {
  const { wrong, missed } = await proveMissed({ jobs: 10, seed });
  expect(wrong, `seed ${seed}`).toEqual([]);
  expect(missed).toBeGreaterThan(20);
});
