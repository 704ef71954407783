import { cpuGrowth, linear } from '@gatehouse/testkit/cpu-growth';
import { expect, test } from 'vitest';
import { diffTexts } from './diff.ts';

const drawn = (before: string, after: string) =>
  diffTexts(before, after).map((hunk) => hunk.map(({ kind, text }) => `${{ same: ' ', added: '+', removed: '-' }[kind]}${text}`));

test.each<[before: string, after: string, hunks: string[][]]>([
  ['', '', []],
  ['a\nb\n', 'a\nb\n', []],
  ['', 'a\n', [['+a']]],
  ['a\n', '', [['-a']]],
  ['a\nb\nc\n', 'a\nx\nc\n', [[' a', '-b', '+x', ' c']]],
  ['a\nb\nc\nd\n', 'b\nc\nx\nd\n', [['-a', ' b', ' c', '+x', ' d']]],
  ['a\n', 'a', [['-a', '+a\u2404']]],
  ['a\nb\na\nb\n', 'b\na\nb\na\n', [['-a', ' b', ' a', ' b', '+a']]],
])('%j becomes %j', (before, after, hunks) => {
  expect(drawn(before, after)).toEqual(hunks);
});

test('distant changes become separate hunks with three context lines each', () => {
  const lines = Array.from({ length: 40 }, (_, index) => `line ${index + 1}`);
  const after = lines.with(4, 'five').with(30, 'thirty-one');
  const hunks = diffTexts(lines.join('\n'), after.join('\n'));
  expect(hunks.map((hunk) => [hunk[0]?.before, hunk.at(-1)?.before])).toEqual([
    [2, 8],
    [28, 34],
  ]);
});

test('the lines of a diff reproduce both texts', () => {
  // A seeded generator, so that a failing case can be repeated.
  let state = 7;
  const random = (below: number): number => {
    state = (state * 48271) % 2147483647;
    return state % below;
  };
  for (let round = 0; round < 200; round++) {
    const make = () => Array.from({ length: random(12) }, () => 'abc'[random(3)] ?? '').join('\n');
    const [before, after] = [make(), make()];
    const lines = diffTexts(before, after).flat();
    const kept = lines.filter(({ kind }) => kind === 'same');
    for (const { text, before: at = 0, after: to = 0 } of kept) {
      expect(`${before.split('\n')[at - 1]}`).toBe(text.replace('\u2404', ''));
      expect(`${after.split('\n')[to - 1]}`).toBe(text.replace('\u2404', ''));
    }
    const total = (text: string) => (text === '' ? 0 : text.split('\n').length - (text.endsWith('\n') ? 1 : 0));
    const removed = lines.filter(({ kind }) => kind === 'removed').length;
    const added = lines.filter(({ kind }) => kind === 'added').length;
    expect(total(before) - removed).toBe(total(after) - added);
  }
});

test('compares two long texts without common lines in linear time', async () => {
  const text = (word: string, length: number) => Array.from({ length }, (_, index) => `${word} ${index}`).join('\n');
  const compare = (length: number) => diffTexts(text('before', length), text('after', length)).flat();
  expect(compare(20_000)).toHaveLength(40_000);
  expect(await cpuGrowth(2_500, compare)).toBeLessThan(linear);
});
