import { cpuGrowth, linear } from '@gatehouse/testkit/cpu-growth';
import { expect, it } from 'vitest';
import { cleanFileName } from './file-name.ts';

it.each([
  ['a/b\\c.png', 'c.png'],
  [' ..hidden. . ', 'hidden'],
  ['. .', undefined],
  ['a . b', 'a . b'],
  ['x\u202egnp.exe', 'x_gnp.exe'],
])('makes %j fit to be shown: %j', (given, cleaned) => {
  expect(cleanFileName(given)).toBe(cleaned);
});

it('takes time linear in a run of spaces, up to the length of a header', async () => {
  const clean = (spaces: number) => cleanFileName(`x${' '.repeat(spaces)}x`);
  expect(clean(15_800)).toHaveLength(120);
  expect(await cpuGrowth(1_975, clean)).toBeLessThan(linear);
});
