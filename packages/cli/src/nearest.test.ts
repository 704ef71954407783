import { expect, test } from 'vitest';
import { nearest } from './nearest.ts';

test.each([
  ['sesion.list', 'session.list'],
  ['tokens.lsit', 'tokens.list'],
  ['SYSTEM.PING', 'system.ping'],
  ['tok', 'tokens.list'],
  ['something.else', undefined],
])('%s means %s', (word, expected) => {
  expect(nearest(word, ['session.list', 'tokens.list', 'system.ping'])).toBe(expected);
});
