import { onPostgres } from '@gatehouse/testkit/sql';
import { expect, test } from 'vitest';
import { proveStartAfterCrash } from './r13-start-after-crash.ts';

test.skipIf(onPostgres)('neither a start after a kill nor the first turns wait for reading a whole table or checking the database', async () => {
  const report = await proveStartAfterCrash({ megabytes: 8, kills: 0 });
  expect(report.wrong).toEqual([]);
  expect(report.statements).toBeGreaterThan(10);
  expect([...report.checks, ...report.scans]).toEqual([]);
});
