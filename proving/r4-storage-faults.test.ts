import { onPostgres } from '@gatehouse/testkit/sql';
import { expect, test } from 'vitest';
import { proveStorageFaults } from './r4-storage-faults.ts';

test.skipIf(onPostgres)('a failing storage call damages nothing, and nothing is acknowledged without being stored', async () => {
  // At the start, and during work.
  const report = await proveStorageFaults({ calls: [5, 260] });
  expect(report.wrong).toEqual([]);
  expect(report.late).toBeGreaterThan(0);
  expect(report.acked).toBeGreaterThan(10);
});
