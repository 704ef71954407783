import { expect, test } from 'vitest';
import { Pace } from './pace.ts';

/** Counts the calls of a view that asks again as soon as it may. */
function callsWithin(ms: number, everyMs: number): number {
  const pace = new Pace(0);
  let calls = 0;
  for (let nowMs = 0; nowMs < ms; nowMs += everyMs) {
    nowMs += pace.next(nowMs);
    if (nowMs < ms) calls += 1;
  }
  return calls;
}

test('a view that changes all the time leaves requests for others, and one that changes now and then is never late', () => {
  expect(callsWithin(3_000, 100)).toBe(30);
  expect(callsWithin(60_000, 100)).toBeLessThan(85);
  expect(callsWithin(600_000, 100)).toBeLessThan(30 + 10 * 51);
  const pace = new Pace(0);
  expect([...Array(100).keys()].map((index) => pace.next(index * 2_000)).every((waitMs) => waitMs === 0)).toBe(true);
});
