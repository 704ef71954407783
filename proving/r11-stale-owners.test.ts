import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveStaleOwners } from './r11-stale-owners.ts';

const seed = freshSeed();

test('an owner that resumes delegated work after its lease expired writes nothing', async () => {
  const { wrong, ...report } = await proveStaleOwners({ pauses: 40, seed });
  expect(wrong, `seed ${seed}`).toEqual([]);
  expect(report.writes).toBeGreaterThan(300);
});
