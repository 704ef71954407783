import { expect, it } from 'vitest';
import { chooseRange } from './media-range.ts';

const medium = { etag: '"a"', modifiedMs: 0, size: 10 };

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
  expect(chooseRange({ range }, medium)).toEqual(chosen);
});

it('is fast for a header of the maximum length', () => {
  const begun = performance.now();
  for (let n = 0; n < 10; n += 1)
    for (const start of ['bytes=', 'bytes=1-']) expect(chooseRange({ range: `${start}${' '.repeat(15_000)}x` }, medium)).toBeUndefined();
  expect(performance.now() - begun).toBeLessThan(500);
});
