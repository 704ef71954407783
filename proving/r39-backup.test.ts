import { onPostgres } from '@gatehouse/testkit/sql';
import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveBackup } from './r39-backup.ts';

const seed = freshSeed();

test.skipIf(onPostgres)('a backup made under load holds all acknowledged writes, whole and in order, and can be restored', async () => {
  const report = await proveBackup({ rounds: 1, fillMb: 8, seed });
  expect(report.wrong, `seed ${seed}`).toEqual([]);
  expect(report.before, `seed ${seed}`).toBeGreaterThan(20);
  expect(report.meanwhile, `seed ${seed}`).toBeGreaterThan(0);
});
