import { expect, test } from 'vitest';
import { proveKilledBooks } from './killed-books.ts';

test('model calls of killed turns are in the books, once', async () => {
  expect(await proveKilledBooks()).toEqual({ kills: 4, answered: 7, wrong: [] });
}, 180_000);
