import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { faultsOf, proveOverload } from './r19-overload.ts';

const seed = freshSeed();

test('at ten times its capacity the daemon accepts what it can do in time and refuses the rest', async () => {
  const report = await proveOverload({ forMs: 3_500, seed });
  expect(faultsOf(report), `seed ${seed}: ${JSON.stringify(report)}`).toEqual([]);
  expect(report.loaded.count, `seed ${seed}`).toBeGreaterThan(report.capacity * 2);
  expect(report.refused.count, `seed ${seed}`).toBeGreaterThan(report.capacity * 15);
});
