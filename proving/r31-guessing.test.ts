import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveGuessing } from './r31-guessing.ts';

const seed = freshSeed();

test('ten wrong secrets a minute of one address are answered with 401, and the right one always works', async () => {
  const report = await proveGuessing({ guesses: 60, seed });
  expect(report.wrong, `seed ${seed}`).toEqual([]);
  expect(Object.values(report.answered), `seed ${seed}`).toEqual([10, 10, 10]);
});
