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
