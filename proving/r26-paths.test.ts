import { expect, test } from 'vitest';
import { provePaths } from './r26-paths.ts';

test('no path and no link that is swapped in leads out of a workspace', async () => {
  const report = await provePaths({ swaps: 250, each: 5 });
  expect(report.wrong).toEqual([]);
  expect(report.paths).toBeGreaterThanOrEqual(60);
  expect(report.routes).toBeGreaterThan(35);
  expect(report.raced.through).toBeGreaterThan(0);
}, 180_000);
