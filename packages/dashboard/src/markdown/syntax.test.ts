import { describe, expect, test } from 'vitest';
import { parseMarkdown } from './syntax.ts';

/** Returns the formulas of a text; those on separate lines are marked with `!`. */
function formulas(text: string): string[] {
  const found: string[] = [];
  const walk = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(walk);
    if (typeof value !== 'object' || value === null) return undefined;
    if ('type' in value && value.type === 'math' && 'tex' in value && 'display' in value)
      found.push(`${value.display === true ? '!' : ''}${String(value.tex)}`);
    Object.values(value).forEach(walk);
  };
  walk(parseMarkdown(text));
  return found;
}

describe('formulas', () => {
  test.each([
    ['so $x^2$ is', ['x^2']],
    ['$a_1$, $b_2$ and ($c$)', ['a_1', 'b_2', 'c']],
    ['cost $\\$5$ here', ['\\$5']],
    ['\\(x_1 + *y*\\) and \\[z\\]', ['x_1 + *y*', '!z']],
    ['$$\na\n- b\n+ c\n$$', ['!a\n- b\n+ c']],
    ['Then\n$$\na = b\n$$\nholds', ['!a = b']],
    ['Then\n\\[\na = b\n\\]\nholds', ['!a = b']],
    ['| $a$ |\n| - |\n| $b$ |', ['a', 'b']],
    ['- item $x$\n- **bold $y$**', ['x', 'y']],
  ])('are found in %j', (text, expected) => expect(formulas(text)).toEqual(expected));

  test.each([
    'between $5 and $6',
    'from $5-$6 to $7',
    'US$5 and A$6, or CA$7',
    '5$ and 10$',
    'echo $HOME/$USER and $PATH',
    '`$x$` and ``\\(y\\)``',
    '```\n$x$\n\\[y\\]\n```',
    '\\$5 and $6\\$',
    '$ x $',
    '$x\n\ny$',
    '$$\nx\n\ny\n$$',
    '[a \\[b\\](https://example.com)',
    '$$$$',
  ])('are not seen in %j', (text) => expect(formulas(text)).toEqual([]));

  test('cost time that grows with the text', () => {
    const time = (text: string): number => {
      const from = performance.now();
      parseMarkdown(text);
      return performance.now() - from;
    };
    for (const part of ['$a ', '\\( ', '$$\n', '[^a ', '\n[^a]: b\n', 'word $5 ', '\\[\n']) expect(time(part.repeat(20_000))).toBeLessThan(1_500);
  });
});

test('footnotes have a label and text; a reference to none stays a reference', () => {
  const [paragraph, , note, other] = parseMarkdown('One[^1], two[^b c].\n\n[^1]: The *first*\n  continues\n[^x]: second');
  expect(paragraph).toMatchObject({ type: 'paragraph', tokens: [{ text: 'One' }, { type: 'footnoteRef', label: '1' }, { text: ', two[^b c].' }] });
  expect(note).toMatchObject({ type: 'footnote', label: '1', tokens: [{ text: 'The ' }, { type: 'em' }, { type: 'br' }, { text: 'continues' }] });
  expect(other).toMatchObject({ type: 'footnote', label: 'x', tokens: [{ text: 'second' }] });
});
