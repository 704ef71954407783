import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveGuessing } from './r31-guessing.ts';

const seed = freshSeed();

test('ten wrong secrets a minute of one address are answered as such, and the right one always works', async () => {
  const report = await proveGuessing({ guesses: 60, seed });
  expect(report.wrong, `seed ${seed}`).toEqual([]);
  expect(Object.values(report.answered), `seed ${seed}`).toEqual([10, 10, 10]);
});

test('a build that keeps its limits under the address as it was spelled is caught', async () => {
  const { wrong } = await proveGuessing({ guesses: 60, seed, broken: 'raw-address-key' });
  expect(wrong.filter((line) => line.includes('were answered as such')).length, `seed ${seed}`).toBe(3);
});

test('a build that also refuses the right secret is caught', async () => {
  const { wrong } = await proveGuessing({ guesses: 30, seed, broken: 'locked-address' });
  expect(
    wrong.some((line) => line.includes('the right secret was refused')),
    `seed ${seed}`,
  ).toBe(true);
});
