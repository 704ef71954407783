import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveGuessing } from './r31-guessing.ts';

const seed = freshSeed();

test('ten secrets a minute of one address are compared, in whatever dress it comes', async () => {
  const report = await proveGuessing({ guesses: 120, seed });
  expect(report.wrong, `seed ${seed}`).toEqual([]);
  expect(Object.values(report.evaluated), `seed ${seed}`).toEqual([10, 10, 10]);
});

test('a build that keeps its limits under the address as it was spelled is caught', async () => {
  const { wrong } = await proveGuessing({ guesses: 60, seed, broken: 'raw-address-key' });
  expect(wrong.filter((line) => line.includes('secrets were compared')).length, `seed ${seed}`).toBe(3);
});
