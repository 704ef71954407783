import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { isFair, proveFairness } from './r20-fairness.ts';

const seed = freshSeed();

test('a principal that floods an agent does not delay another one', async () => {
  const report = await proveFairness({ turns: 10, rounds: 2, clients: 400, seed });
  expect(
    report.rounds.flatMap(({ flooded }) => flooded.failed),
    `seed ${seed}`,
  ).toEqual([]);
  expect(report.flood.refused, `seed ${seed}`).toBeGreaterThan(0);
  expect(isFair(report), `seed ${seed}: ${JSON.stringify(report)}`).toBe(true);
});
