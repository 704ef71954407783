import { expect, test } from 'vitest';
import { cpuGrowth, linear } from './cpu-growth.ts';

test('distinguishes linear time from quadratic time', async () => {
  expect(await cpuGrowth(20_000, (length) => /ab/.test('a'.repeat(length)))).toBeLessThan(linear);
  expect(await cpuGrowth(1_000, (length) => pairs(length))).toBeGreaterThan(linear);
});

function pairs(length: number): number {
  let sum = 0;
  for (let a = 0; a < length; a += 1) for (let b = 0; b < length; b += 1) sum = (sum + a * b) % 65_537;
  return sum;
}
