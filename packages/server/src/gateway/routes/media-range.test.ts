import { cpuGrowth, linear } from '@gatehouse/testkit/cpu-growth';
import { expect, it } from 'vitest';
import { chooseRange } from './media-range.ts';

const mediaFile = { etag: '"a"', modifiedMs: 0, size: 10 };

it.each([
  ['bytes=0-3', { start: 0, end: 3 }],
  ['bytes = 0-3', undefined],
  ['bytes= 2 - 4 ', { start: 2, end: 4 }],
  ['bytes=8-', { start: 8, end: 9 }],
  ['bytes=-3', { start: 7, end: 9 }],
  ['bytes=-', undefined],
  ['bytes=-0', 'unsatisfiable'],
  ['bytes=10-', 'unsatisfiable'],
  ['bytes=3-2', undefined],
  [`bytes=0-${'9'.repeat(15)}`, { start: 0, end: 9 }],
  [`bytes=0-${'9'.repeat(16)}`, undefined],
])('%j of ten bytes: %j', (range, chosen) => {
  expect(chooseRange({ range }, mediaFile)).toEqual(chosen);
});

it.each(['bytes=', 'bytes=1-'])('takes time linear in the header up to its maximum length: %s', async (start) => {
  const choose = (spaces: number) => chooseRange({ range: `${start}${' '.repeat(spaces)}x` }, mediaFile);
  expect(choose(15_000)).toBeUndefined();
  expect(await cpuGrowth(1_875, choose)).toBeLessThan(linear);
});
