import { onPostgres } from '@gatehouse/testkit/sql';
import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveUpgrade } from './r38-upgrade.ts';

const seed = freshSeed();

test.skipIf(onPostgres)('data of earlier releases survive whole, also a kill during a migration', async () => {
  const report = await proveUpgrade({ from: [10, 17, 24], killFrom: 24, kills: 3, seed });
  expect(report.wrong, `seed ${seed}`).toEqual([]);
  expect(report.upgrades).toBe(3);
  expect(report.rows).toBeGreaterThan(40);
});

test.skipIf(onPostgres)('a build whose migrations are not atomic is caught', async () => {
  const { wrong, kills } = await proveUpgrade({ from: [], killFrom: 14, kills: 2, begun: true, seed, broken: 'non-transactional-step' });
  expect(kills, `seed ${seed}`).toBeGreaterThan(0);
  expect(
    wrong.filter((line) => /killed in \d+/.test(line)),
    `seed ${seed}`,
  ).not.toEqual([]);
});
