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

it('takes no longer for a run of spaces as long as a header may be', () => {
  const begun = performance.now();
  for (let n = 0; n < 20; n += 1) expect(cleanFileName(`x${' '.repeat(15_800)}x`)).toHaveLength(120);
  expect(performance.now() - begun).toBeLessThan(500);
});
