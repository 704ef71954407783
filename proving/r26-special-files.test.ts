import { expect, test } from 'vitest';
import { proveSpecialFiles } from './r26-special-files.ts';

test('no pipe that is left in a workspace keeps the daemon waiting', async () => {
  const report = await proveSpecialFiles({ rounds: 1, raced: 0 });
  expect(report.wrong).toEqual([]);
  expect(report.files).toBeGreaterThan(40);
});
