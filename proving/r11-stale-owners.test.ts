import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveStaleOwners } from './r11-stale-owners.ts';

const seed = freshSeed();

test('an owner that resumes delegated work after its lease expired writes nothing', async () => {
  const { wrong, ...report } = await proveStaleOwners({ pauses: 40, seed });
  expect(wrong, `seed ${seed}`).toEqual([]);
  expect(report.writes).toBeGreaterThan(300);
});

test('a build that does not check the fence is caught', async () => {
  // Ten of each kind: a write changes nothing where the work was over by chance.
  const { wrong } = await proveStaleOwners({ pauses: 50, seed, broken: 'no-fence' });
  for (const write of ['begin', 'move', 'open']) expect(wrong.join('\n'), `seed ${seed}`).toContain(`the stale owner's ${write} has changed`);
});
