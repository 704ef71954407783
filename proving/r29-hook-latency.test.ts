import { expect, test } from 'vitest';
import { ackWithinMs, proveHookLatency } from './r29-hook-latency.ts';

test('a webhook is answered immediately while fifty turns run', async () => {
  const report = await proveHookLatency({ hooks: 100, perSecond: 50 });
  expect([report.refused, report.running], JSON.stringify(report)).toEqual([[], 50]);
  expect(report.p99Ms, JSON.stringify(report)).toBeLessThan(ackWithinMs);
}, 60_000);

test('a build that answers after the turn is caught', async () => {
  const report = await proveHookLatency({ hooks: 20, perSecond: 50, broken: 'await-the-turn' });
  expect(report.p99Ms, JSON.stringify(report)).toBeGreaterThan(ackWithinMs);
}, 60_000);
