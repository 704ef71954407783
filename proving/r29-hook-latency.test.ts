import { expect, test } from 'vitest';
import { proveHookLatency } from './r29-hook-latency.ts';

test('a webhook is answered immediately while fifty turns run', async () => {
  // No turn of theirs can end before; the full form measures.
  const report = await proveHookLatency({ hooks: 100, perSecond: 50, held: true });
  expect([report.hooks, report.refused, report.running], JSON.stringify(report)).toEqual([100, [], 50]);
});
