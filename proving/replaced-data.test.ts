import { onPostgres } from '@gatehouse/testkit/sql';
import { expect, test } from 'vitest';
import { proveReplacedData } from './replaced-data.ts';

test.skipIf(onPostgres)('nothing is acknowledged into files of data/ that were moved or replaced', async () => {
  const report = await proveReplacedData({ jobs: false });
  expect(report.wrong).toEqual([]);
  expect(report.refused).toBe(16);
});
