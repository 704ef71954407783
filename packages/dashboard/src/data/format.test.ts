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
])('formats %d dollars as %s', (dollars, text) => {
  expect(money(dollars)).toBe(text);
});

test.each([
  [0, '0 %'],
  [0.001, '< 1 %'],
  [0.424, '42 %'],
  [0.999, '> 99 %'],
  [1, '100 %'],
])('formats the share %d as %s', (share, text) => {
  expect(percent(share)).toBe(text);
});

test('abbreviates large counts', () => {
  expect([12, 340_000, 1_234_567].map(shortCount)).toEqual(['12', '340K', '1.2M']);
});
