import { expect, test } from 'vitest';
import { freshSeed } from './lib/random.ts';
import { proveBackup } from './r39-backup.ts';

const seed = freshSeed();

test('a backup made under load holds what was acknowledged, whole and in order, and comes back', async () => {
  const report = await proveBackup({ rounds: 1, fillMb: 8, seed });
  expect(report.wrong, `seed ${seed}`).toEqual([]);
  expect(report.before, `seed ${seed}`).toBeGreaterThan(20);
  expect(report.meanwhile, `seed ${seed}`).toBeGreaterThan(0);
});

test('a build that copies the file as it lies there is caught', async () => {
  const { wrong } = await proveBackup({ rounds: 1, fillMb: 0, seed, broken: 'copy-of-a-live-file' });
  expect(wrong, `seed ${seed}`).not.toEqual([]);
});
