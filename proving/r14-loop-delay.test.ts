import { onPostgres } from '@gatehouse/testkit/sql';
import { expect, test } from 'vitest';
import { proveLoopDelay } from './r14-loop-delay.ts';

test.skipIf(onPostgres)('no statement runs on the thread of the event loop while streams, searches, backups and deletions do', async () => {
  const report = await proveLoopDelay({ streams: 10, forMs: 200, conversations: 3, watched: true });
  expect(report).toMatchObject({ onMain: [], failed: [] });
  for (const count of [report.streams, report.searches, report.backups, report.deletions]) expect(count).toBeGreaterThan(0);
});
