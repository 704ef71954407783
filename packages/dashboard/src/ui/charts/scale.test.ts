import { expect, test } from 'vitest';
import { labelEvery, scaleFor } from './scale.ts';

test.each([
  [0, [0, 0.5, 1]],
  [1, [0, 0.5, 1]],
  [4, [0, 1, 2, 3, 4]],
  [7.3, [0, 2, 4, 6, 8]],
  [0.00031, [0, 0.0001, 0.0002, 0.0003, 0.0004]],
  [98_000, [0, 50_000, 100_000]],
  [100_000, [0, 50_000, 100_000]],
  [130_000, [0, 50_000, 100_000, 150_000]],
])('uses round marks for an axis up to %d', (highest, ticks) => {
  expect(scaleFor(highest)).toEqual({ ticks, top: ticks.at(-1) });
});

test('uses whole steps for counts', () => {
  expect(scaleFor(1, 1).ticks).toEqual([0, 1]);
  expect(scaleFor(3, 1).ticks).toEqual([0, 1, 2, 3]);
});

test.each([
  [7, 700, 60, 1],
  [30, 700, 60, 3],
  [90, 300, 60, 18],
  [5, 10, 60, 5],
])('thins out %d labels in %d px', (count, width, label, every) => {
  expect(labelEvery(count, width, label)).toBe(every);
});
