import { expect, test } from 'vitest';
import { proveStorageFaults } from './r4-storage-faults.ts';

test('a call of the storage that fails damages nothing, and nothing is acknowledged that is not kept', async () => {
  // At the start, and in the middle of work.
  const report = await proveStorageFaults({ calls: [5, 260] });
  expect(report.wrong).toEqual([]);
  expect(report.late).toBeGreaterThan(0);
  expect(report.acked).toBeGreaterThan(10);
});
