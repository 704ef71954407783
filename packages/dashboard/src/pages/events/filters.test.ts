import { expect, test } from 'vitest';
import { chooseRange, filterEntries, noFilters } from './filters.ts';

const entry = (number: number, kind: string, atMs: number, payload: object = {}) => ({ number, kind, payload, atMs });
const entries = [
  entry(1, 'message:received', 10, { text: 'Walrus' }),
  entry(2, 'gap', 20),
  entry(3, 'tool:finished', 30),
  entry(4, 'message:sent', 40),
];
const numbers = (filters: Partial<typeof noFilters>, { off = new Set<string>(), query = '' } = {}) =>
  filterEntries(entries, { ...noFilters, ...filters }, { off, query }).map(({ number }) => number);

test('shows the newest first, by category, text, time and kind', () => {
  expect(numbers({})).toEqual([4, 3, 2, 1]);
  expect(numbers({}, { off: new Set(['Messages']) })).toEqual([3, 2]);
  expect(numbers({}, { query: 'walrus' })).toEqual([2, 1]);
  expect(numbers({ sinceMs: 20, untilMs: 40 })).toEqual([3, 2]);
  expect(numbers({ kind: 'message:sent' }, { off: new Set(['Messages']) })).toEqual([4]);
});

test('a range begins when it is chosen, and entered times stay', () => {
  expect(chooseRange(noFilters, 'hour', 4_000_000)).toEqual({ kind: undefined, range: 'hour', sinceMs: 400_000, untilMs: undefined });
  expect(chooseRange({ ...noFilters, sinceMs: 5, untilMs: 6 }, 'custom', 9)).toMatchObject({ sinceMs: 5, untilMs: 6 });
  expect(chooseRange({ ...noFilters, sinceMs: 5, untilMs: 6 }, 'newest', 9)).toMatchObject({ sinceMs: undefined, untilMs: undefined });
});
