import { expect, test } from 'vitest';
import { canBeToken, tokenOfText } from './token.ts';

test.each([
  ['ght_abc', 'ght_abc'],
  ['  ght_abc\n', 'ght_abc'],
  ['Bearer ght_abc', 'ght_abc'],
  ['authorization: bearer ght_abc', 'ght_abc'],
  ['http://127.0.0.1:4766/#token=ght_abc', 'ght_abc'],
  ['open    http://127.0.0.1:4766/#token=ght_abc', 'ght_abc'],
  ['http://127.0.0.1:4766/#token=a%2Bb', 'a+b'],
  ['has#hash', 'has#hash'],
])('finds in %j the token %j', (pasted, token) => {
  expect(tokenOfText(pasted)).toBe(token);
});

test('rejects text that a header cannot carry', () => {
  expect(['', 'schön', 'two\nlines', 'a\u0000b', '☃', 'x'.repeat(5000)].filter(canBeToken)).toEqual([]);
  expect(canBeToken(`ght_${'x'.repeat(60)}~!`)).toBe(true);
});
