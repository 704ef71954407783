import { expect, test } from 'vitest';
import { money, percent, shortCount } from './format.ts';

test.each([
  [0, '$0'],
  [0.000000123, '$0.00000012'],
  [0.000138, '$0.00014'],
  [0.0098, '$0.0098'],
  [0.4249, '$0.42'],
  [0.5, '$0.50'],
  [12.3, '$12.30'],
  [1204.4, '$1,204'],
])('%d dollars are %s', (dollars, words) => {
  expect(money(dollars)).toBe(words);
});

test.each([
  [0, '0 %'],
  [0.001, '< 1 %'],
  [0.424, '42 %'],
  [0.999, '> 99 %'],
  [1, '100 %'],
])('a share of %d is %s', (share, words) => {
  expect(percent(share)).toBe(words);
});

test('large counts are short', () => {
  expect([12, 340_000, 1_234_567].map(shortCount)).toEqual(['12', '340K', '1.2M']);
});
