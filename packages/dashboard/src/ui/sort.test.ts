import { expect, test } from 'vitest';
import { sortRows } from './sort.tsx';

test('sorts numbers by value, texts as people read them, and unknown values last in both orders', () => {
  expect(sortRows([3, null, 20, 1], (row) => row, false)).toEqual([1, 3, 20, null]);
  expect(sortRows([3, null, 20, 1], (row) => row, true)).toEqual([20, 3, 1, null]);
  expect(sortRows(['item 10', 'Item 2', 'äpfel', 'zebra'], (row) => row, false)).toEqual(['äpfel', 'Item 2', 'item 10', 'zebra']);
});
