import { expect, test } from 'vitest';
import { killPoints, proveConfigChanges } from './config-changes.ts';
import { freshSeed } from './lib/random.ts';

test('config.yaml survives changes by calls and by hand, with kills between their steps, whole and with its history', async () => {
  const seed = freshSeed();
  const report = await proveConfigChanges({ patches: 40, seed });
  expect(report.wrong, `seed ${seed}`).toEqual([]);
  expect(Object.keys(report.kills).length, `seed ${seed}`).toBeGreaterThan(2);
  expect(killPoints).toEqual(expect.arrayContaining(Object.keys(report.kills)));
});
