import { expect, test } from 'vitest';
import { sliceLength } from '../../markdown/slices.ts';
import { earlierStart } from './drawn-messages.ts';

/** Returns how many messages each task draws, the newest first. */
function slicesOf(lengths: readonly number[]): number[] {
  const messages = lengths.map((length) => ({ text: 'x'.repeat(length) }));
  const slices: number[] = [];
  for (let first = messages.length; first > 0;) {
    const start = earlierStart(messages, first);
    slices.push(first - start);
    first = start;
  }
  return slices;
}

test('messages are drawn in slices of about one slice of text, the newest first', () => {
  expect(slicesOf([10, 2_000, 10, 2_000, 10])).toEqual([2, 2, 1]);
  expect(Math.max(...slicesOf(Array.from({ length: 50 }, (_, at) => (at % 2 === 0 ? 20 : 4_000))))).toBeLessThanOrEqual(2);
  expect(Math.max(...slicesOf(Array.from({ length: 200 }, () => 20)))).toBeLessThanOrEqual(4);
});

test('a message that is longer than a slice is drawn alone', () => {
  expect(slicesOf([sliceLength * 20, 10, sliceLength * 20])).toEqual([1, 1, 1]);
  expect(slicesOf([])).toEqual([]);
});
