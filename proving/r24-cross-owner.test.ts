import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveCrossOwner } from './r24-cross-owner.ts';

const seed = freshSeed();

test('foreign things are answered like nonexistent ones, in bytes and in time', async () => {
  const report = await proveCrossOwner({ pairs: 12, seed });
  expect(report.wrong, `seed ${seed}`).toEqual([]);
  expect(report.controls).toBeGreaterThan(50);
  expect(report.timed.inputs).toBeGreaterThan(10);
});
