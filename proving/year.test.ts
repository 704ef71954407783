import { onPostgres } from '@gatehouse/testkit/sql';
import { expect, test } from 'vitest';
import { growthOf, proveYear } from './year.ts';

/** Not made by this proof; their own tests delete them. */
const others = ['archives', 'reasoning', 'browserRecordings'];
const pace = { turns: 12, callsPerTurn: 4, events: 40, subAgents: 2 };

test.skipIf(onPostgres)('old records are deleted, and the sums of their calls stay', async () => {
  const report = await proveYear({ days: 130, pace });
  expect(report.wrong).toEqual([]);
  expect(growthOf(report, pace)).toEqual([]);
  expect(Object.entries(report.deleted).filter(([name, count]) => count === 0 && !others.includes(name))).toEqual([]);
});
