import { expect, test } from 'vitest';
import { proveKilledBooks } from './killed-books.ts';

test('model calls of killed turns are in the books, once', async () => {
  expect(await proveKilledBooks()).toEqual({ kills: 4, answered: 7, wrong: [] });
}, 180_000);

test('a build that does not note calls is caught', async () => {
  const { wrong } = await proveKilledBooks({ broken: 'unnoted-calls' });
  expect(wrong.filter((line) => line.startsWith('after the kills'))).toHaveLength(5);
}, 180_000);
