import { cpuGrowth, linear } from '@gatehouse/testkit/cpu-growth';
import { expect, it } from 'vitest';
import { findLinks } from './links.ts';

it.each([
  ['See https://a.example/x.', ['https://a.example/x']],
  ['(https://a.example/x)', ['https://a.example/x']],
  ['https://a.example/wiki/X_(y) and more', ['https://a.example/wiki/X_(y)']],
  ['[words](https://a.example/x "title"), https://b.example', ['https://a.example/x', 'https://b.example/']],
  ['https://b.example/ first, [words](<https://a.example/x>)', ['https://a.example/x', 'https://b.example/']],
  ['[w](https://a.example/wiki/X_(y))', ['https://a.example/wiki/X_(y)']],
  ['[https://b.example](https://a.example/x)', ['https://a.example/x']],
  ['[a] b](https://a.example/x) [c](https://b.example', ['https://a.example/x', 'https://b.example/']],
  ['[[n]](https://a.example/x) [o](https://b.example/y)', ['https://b.example/y', 'https://a.example/x']],
  ['twice https://a.example/x https://a.example/x#part', ['https://a.example/x']],
  ['**https://a.example/x**', ['https://a.example/x']],
  ['https://user:secret@a.example/ http://', []],
  ['ftp://a.example javascript:alert(1) nothing', []],
])('finds the addresses in %j', (text, urls) => {
  expect(findLinks(text)).toEqual(urls);
});

it('takes time linear in the length of a hostile text', async () => {
  const open = '['.repeat(490);
  const texts: readonly ((length: number) => string)[] = [
    (length) => '['.repeat(length),
    (length) => '[a]('.repeat(length / 5),
    (length) => `https://${'('.repeat(length)}`,
    (length) => 'http://x'.repeat(length / 10),
    (length) => `${open}](http://${'a'.repeat(2000)}(`.repeat(length / 2500),
    (length) => `${open}](http://a`.repeat(length / 500),
    (length) => `[](http://a${' '.repeat(290)}`.repeat(length / 300),
    (length) => '[](http://a'.repeat(length / 11),
  ];
  for (const text of texts) expect(await cpuGrowth(12_500, (length) => findLinks(text(length))), text(20_000).slice(0, 500)).toBeLessThan(linear);
});
