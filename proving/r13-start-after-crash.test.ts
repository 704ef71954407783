import { expect, test } from 'vitest';
import { proveStartAfterCrash } from './r13-start-after-crash.ts';

test('a start after a kill and the first turns wait for nothing that reads a whole table or checks the database', async () => {
  const report = await proveStartAfterCrash({ megabytes: 8, kills: 0 });
  expect(report.wrong).toEqual([]);
  expect(report.statements).toBeGreaterThan(10);
  expect([...report.checks, ...report.scans]).toEqual([]);
});
