import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveCanaries } from './r27-canaries.ts';

const seed = freshSeed();

test('no secret leaks, however it is padded or cut', async () => {
  const report = await proveCanaries({ seed });
  expect(report.found, `seed ${seed}`).toEqual([]);
  expect(report.unprovoked, `seed ${seed}`).toEqual([]);
  expect(report.canaries).toBeGreaterThanOrEqual(30);
  expect(report.surfaces).toBeGreaterThan(40);
});
