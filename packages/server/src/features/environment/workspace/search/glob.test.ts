import { expect, test } from 'vitest';
import { compileGlob } from './glob.ts';

test.each([
  ['report-{a,b}.txt', 'notes/report-a.txt', true],
  ['report-{a,b}.txt', 'report-c.txt', false],
  ['2026-*.md', '2026-01-02.md', true],
  ['*.md', '.hidden.md', true],
  ['src/**/*.ts', 'src/x/y/a.ts', true],
  ['src/**/*.ts', 'src/a.ts', true],
  ['a?c', 'a/c', false],
  ['[!a]-b', 'c-b', true],
  ['a+(b)|c^$.md', 'a+(b)|c^$.md', true],
  ['!a.md', 'b.md', false],
  ['été*', 'été-1.md', true],
  ['a b@#&~`"\'<>=:;%,.md', 'a b@#&~`"\'<>=:;%,.md', true],
])('%j compared with %j: %j', (pattern, path, fits) => {
  expect(compileGlob(pattern)(path)).toBe(fits);
});

test.each(['a{b', '[z-a]'])('%j is not a valid pattern', (pattern) => {
  expect(() => compileGlob(pattern)).toThrow(/pattern: /);
});
