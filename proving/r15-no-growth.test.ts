import { expect, test } from 'vitest';
import { growthOf, proveNoGrowth } from './r15-no-growth.ts';

test('finished requests and streams leave no listener and no handle', async () => {
  expect(growthOf(await proveNoGrowth({ requests: 300, streams: 200, warm: 0.5, settleMs: 100 }))).toEqual([]);
});
