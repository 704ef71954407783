import { describe, expect, test } from 'vitest';
import { createBlockParser } from './blocks.ts';
import { parseMarkdown } from './syntax.ts';

const sample = [
  '# Head\n\nSome **bold** text\nover two lines\n\n',
  '- one\n- two\n\n  still two\n\n- three\n\nnot of the list\n\n',
  '1. first\n   ```ts\n   const a = 1;\n\n   const b = 2;\n   ```\n2. second\n\n',
  'Set\n===\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\nafter\n---\n\n',
  '```js\nlet open = true;\n\n# no head\n```\n\n> quote\nlazy\n\n> again\n\n',
  'Before\n$$\na\n- b = c\n$$\nand $x^2$, \\(y\\)\n\n\\[\nz\n\\]\n\nSaid[^1] and[^two]\n\n[^1]: first\n  more\n[^two]: *second*\n\nafter\n\n',
  '<div>\nraw\n</div>\n\n***\n\n    indented\n\n    code\n\nend &amp; `x`\n',
].join('');

const shape = (tokens: unknown) => JSON.stringify(tokens);

describe('incremental parsing', () => {
  test.each([1, 3, 7, 40])('equals parsing at once, in chunks of %i', (size) => {
    const parse = createBlockParser();
    for (let end = size; end < sample.length + size; end += size) {
      const text = sample.slice(0, end);
      expect(shape(parse(text))).toBe(shape([...parseMarkdown(text)]));
    }
  });

  test('handles late definitions, foreign line ends and a replaced text', () => {
    const parse = createBlockParser();
    for (const text of [
      'See [it].\n\none\n\ntwo\n\n',
      'See [it].\n\none\n\ntwo\n\n[it]: https://example.com\n\nthree',
      'See [it].\n\none\n\ntwo\n\n[it]: https://example.com\n\nthree\n\nfour',
      'a\r\n\r\nb\r\n\r\nc\r\n\r\nd',
      'a\r\n\r\nb\r\n\r\nc\r\n\r\nd\r\n\r\ne',
      'short',
    ])
      expect(shape(parse(text))).toBe(shape([...parseMarkdown(text)]));
  });

  test('keeps complete blocks, so that they are not drawn again', () => {
    const parse = createBlockParser();
    const before = parse('# One\n\ntwo\n\nthree\n\nfour');
    const after = parse('# One\n\ntwo\n\nthree\n\nfour and more');
    expect(after[0]).toBe(before[0]);
    expect(after.at(-1)).not.toBe(before.at(-1));
  });
});
