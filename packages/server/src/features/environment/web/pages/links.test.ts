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

it('looks through a long hostile text in no time', () => {
  const open = '['.repeat(490);
  const texts = [
    '['.repeat(100_000),
    `${'[a]('.repeat(20_000)}`,
    `https://${'('.repeat(90_000)}`,
    'http://x'.repeat(10_000),
    `${open}](http://${'a'.repeat(2000)}(`.repeat(40),
    `${open}](http://a`.repeat(200),
    `[](http://a${' '.repeat(290)}`.repeat(330),
    '[](http://a'.repeat(9000),
  ];
  for (const text of texts) {
    const before = performance.now();
    findLinks(text);
    expect(performance.now() - before).toBeLessThan(500);
  }
});
