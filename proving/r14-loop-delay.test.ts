import { expect, test } from 'vitest';
import { proveLoopDelay } from './r14-loop-delay.ts';

const short = { streams: 20, forMs: 400, conversations: 5, watched: true };

test('no statement runs on the thread of the event loop while streams, searches, backups and deletions do', async () => {
  const report = await proveLoopDelay(short);
  expect(report).toMatchObject({ onMain: [], failed: [] });
  for (const count of [report.streams, report.searches, report.backups, report.deletions]) expect(count).toBeGreaterThan(0);
});

test('a build that asks the database on that thread is caught', async () => {
  const { onMain } = await proveLoopDelay({ ...short, streams: 1, forMs: 0, conversations: 1, broken: 'query-on-main' });
  expect(onMain).toContainEqual(expect.stringContaining('WITH RECURSIVE'));
});
