import { expect, test } from 'vitest';
import { growthOf, proveNoGrowth } from './r15-no-growth.ts';

const short = { requests: 1_500, streams: 200, warm: 0.5, settleMs: 100 };

test('requests and streams that are over leave no listener and no handle', async () => {
  expect(growthOf(await proveNoGrowth(short))).toEqual([]);
});

test('a build that keeps who left an event stream is caught', async () => {
  const report = await proveNoGrowth({ ...short, requests: 10, broken: 'leaking-readers' });
  expect(growthOf(report)).toContainEqual(expect.stringContaining('functions more are held'));
});
