import { expect, test } from 'vitest';
import { colorOf } from './terminal-screen.tsx';
import { typedBy } from './terminal-keys.ts';

const press = (key: string, more: object = {}) => typedBy({ key, ctrlKey: false, altKey: false, metaKey: false, ...more });

test('keys of the browser type what they mean in a terminal; those of the browser stay with it', () => {
  expect(press('a')).toEqual({ text: 'a' });
  expect(press('€', { ctrlKey: true, altKey: true })).toEqual({ text: '€' });
  expect(press('Enter')).toEqual({ keys: ['enter'] });
  expect(press('F5')).toEqual({ keys: ['f5'] });
  expect(press('C', { ctrlKey: true })).toEqual({ keys: ['ctrl+c'] });
  for (const [key, more] of [['Tab'], ['Escape'], ['Shift'], ['v', { ctrlKey: true }], ['c', { metaKey: true }], ['constructor']] as const)
    expect(press(key, more)).toBeUndefined();
});

test('colors are those of the palette, and nothing else becomes a style', () => {
  expect([colorOf(1), colorOf(16), colorOf(231), colorOf(232), colorOf('#a0b0c0')]).toEqual([
    '#ef5350',
    'rgb(0, 0, 0)',
    'rgb(255, 255, 255)',
    'rgb(8, 8, 8)',
    '#a0b0c0',
  ]);
  expect(colorOf('url(https://evil.example)')).toBeUndefined();
});
