import { expect, test } from 'vitest';
import { plainText, shorten } from './plain.ts';

test.each([
  ['Grüße, 世界 👋', 'Grüße, 世界 👋'],
  ['a\nb\tc', 'a\\nb\\tc'],
  ['\u001b[31mred\u0007', '\\u001b[31mred\\u0007'],
  ['\u009b2J', '\\u009b2J'],
  ['exe.\u202egnp', 'exe.\\u202egnp'],
])('%j is shown as %j', (text, shown) => {
  expect(plainText(text)).toBe(shown);
});

test.each([
  ['abcde', 5, 'abcde'],
  ['abcdef', 5, 'abcd…'],
  ['👋👋👋', 3, '👋👋👋'],
  ['👋👋👋👋', 3, '👋👋…'],
])('%j in %i characters', (text, limit, shown) => {
  expect(shorten(text, limit)).toBe(shown);
});
