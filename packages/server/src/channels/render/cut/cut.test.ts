import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { TextFlavour, TextRules } from '../../port.ts';
import { render } from '../render.ts';
import { answer } from '../testing/answers.ts';
import { faultOfDiscord, faultOfEmail, faultOfMatrix, faultOfSlack, faultOfTelegram, lettersOf, visibleOf } from '../testing/checkers.ts';
import { known, parse } from '../tree.ts';
import { cutMarkdown, cutWithRest } from './cut.ts';

/** Texts for each flavour; `GATEHOUSE_TEST_TEXTS=10000` (and `--testTimeout 0`) is the full form. */
const runs = Number(process.env['GATEHOUSE_TEST_TEXTS'] ?? 60);
const sizeOf = (text: string, unit: TextRules['unit']): number => (unit === 'bytes' ? Buffer.byteLength(text) : text.length);
const rulesOf = (flavour: TextFlavour, most: number, unit: TextRules['unit'] = 'utf16'): TextRules => ({
  flavour,
  most,
  unit,
  isLine: false,
  maxParts: 1_000,
});

const noFault = (): undefined => undefined;
const flavours: readonly [TextRules, (markup: string) => string | undefined][] = [
  [rulesOf('plain', 150, 'bytes'), noFault],
  [rulesOf('telegram', 400), faultOfTelegram],
  [rulesOf('slack', 400), faultOfSlack],
  [rulesOf('discord', 300), faultOfDiscord],
  [rulesOf('matrix', 600, 'bytes'), faultOfMatrix],
  [rulesOf('email', 900), faultOfEmail],
];

/** Returns the first word that does not follow on the ones before. */
function missingWord(shown: string, words: readonly string[]): string | undefined {
  let at = 0;
  return words.map(lettersOf).find((word) => {
    const found = shown.indexOf(word, at);
    at = found + word.length;
    return found === -1;
  });
}

describe.each(flavours)('an answer cut for $flavour', (rules, faultOf) => {
  test('keeps its words, fits, and is correct markup', () => {
    fc.assert(
      fc.property(answer, ({ source, words }) => {
        const parts = cutMarkdown(source, rules);
        const rendered = parts.map((part) => render(part, rules.flavour));
        for (const { text, markup = '' } of rendered) {
          expect(sizeOf(text, rules.unit)).toBeLessThanOrEqual(rules.most);
          expect(sizeOf(markup, rules.unit)).toBeLessThanOrEqual(rules.most);
          expect(`${text}${markup}`.isWellFormed()).toBe(true);
          expect(text.trim()).not.toBe('');
          expect(faultOf(markup)).toBeUndefined();
        }
        expect(missingWord(lettersOf(rendered.map(({ text }) => text).join('')), words)).toBeUndefined();
        if (rules.flavour !== 'plain') expect(missingWord(rendered.map(({ markup = '' }) => visibleOf(markup)).join(''), words)).toBeUndefined();
        // Every block of code is complete in its part.
        for (const { type, raw } of parts.flatMap((part) => known(parse(part))))
          if (type === 'code' && /^[`~]/.test(raw)) expect(raw).toMatch(/^([`~]{3,})[^\n]*\n(?:[\s\S]*\n)?\1\s*$/);
      }),
      { numRuns: runs },
    );
  });
});

const lines: TextRules = { flavour: 'irc', most: 40, unit: 'bytes', isLine: true, maxParts: 5 };
const whole: TextRules = { flavour: 'plain', most: 40, unit: 'utf16', isLine: false, maxParts: 5 };

test('an answer becomes lines without the marks of Markdown, none longer than the platform takes', () => {
  expect(cutMarkdown('# Title\n\nSee [the page](https://a.b) and **this**.\n```sh\n**kept** # as it is\n```', { ...lines, most: 80 })).toEqual([
    'Title',
    'See the page <https://a.b> and this.',
    '**kept** # as it is',
  ]);
  expect(cutMarkdown('one two three four five six seven eight nine ten', lines)).toEqual(['one two three four five six seven eight', 'nine ten']);
});

test('a long answer is cut with a note', () => {
  const nine = Array.from({ length: 9 }, (_, n) => `line ${n}`).join('\n');
  expect(cutMarkdown(nine, lines)).toEqual(['line 0', 'line 1', 'line 2', 'line 3', '… (cut)']);
  expect(cutMarkdown(nine, { ...whole, most: 21, maxParts: 2 })).toEqual(['line 0\nline 1\nline 2', 'line 3\n\n… (cut)']);
  // A platform that takes files gets the rest, whole.
  expect(cutWithRest(nine, { ...whole, most: 35, maxParts: 1 })).toEqual({
    parts: [`line 0\n\n… (the rest is in the file)`],
    rest: nine.slice(nine.indexOf('line 1')),
  });
  expect(cutWithRest('short', whole)).toEqual({ parts: ['short'], rest: '' });
});

test.each([
  ['lines', lines],
  ['whole messages', whole],
])('any text fits as %s, without broken characters', (_name, rules) => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme', maxLength: 90 }), { maxLength: 12 }), (texts) => {
      const parts = cutMarkdown(texts.join('\n'), rules);
      expect(parts.length).toBeLessThanOrEqual(rules.maxParts);
      for (const part of parts) {
        const { text } = render(part, rules.flavour);
        expect(sizeOf(text, rules.unit)).toBeLessThanOrEqual(rules.most);
        expect(part.isWellFormed()).toBe(true);
        if (rules.isLine) expect(part).not.toMatch(/[\r\n\0]/);
        expect(text.trim()).not.toBe('');
      }
    }),
  );
});

const telegram = (most: number): TextRules => rulesOf('telegram', most);

test('cuts between blocks, and leaves no heading behind', () => {
  expect(cutMarkdown('First text.\n\n## Next\n\nSecond text.', telegram(34))).toEqual(['First text.', '## Next\n\nSecond text.']);
});

test('a long block of code is closed and opened again with its language', () => {
  const parts = cutMarkdown('Run:\n\n````c++ x=1\none();\n```\ntwo();\nthree();\n````\n\nDone.', telegram(70));
  expect(parts).toEqual(['Run:\n\n````c++ x=1\none();\n```\ntwo();\n````', '```c++ x=1\nthree();\n```\n\nDone.']);
});

test('a fence without an end does not reach what comes after it', () => {
  const parts = cutMarkdown(`- one\n  \`\`\`\n  ${'code '.repeat(12)}\n- two **bold**`, telegram(50));
  expect(parts.at(-1)).toMatch(/- two \*\*bold\*\*$/);
  expect(render(parts.at(-1) ?? '', 'telegram').markup).toMatch(/• two <b>bold<\/b>$/);
});

test('the next part continues emphasis, numbers of a list and headers of a table', () => {
  expect(cutMarkdown('**one two three _four five_ six**', telegram(30))).toEqual(['**one two three**', '**_four five_ six**']);
  expect(cutMarkdown('8. one\n9. two\n10. three\n11. four', telegram(14))).toEqual(['8. one\n9. two', '10. three', '11. four']);
  expect(cutMarkdown('| a |\n|:-:|\n| one |\n| two |\n| six |', telegram(26))).toEqual(['| a |\n|:-:|\n| one |\n| two |', '| a |\n|:-:|\n| six |']);
});

test('links are not cut, and keep their addresses', () => {
  const source = 'See [the long page][p] or [another page][P].\n\n[p]: https://a.example/x';
  const parts = cutMarkdown(source, telegram(70));
  expect(parts.map((part) => render(part, 'telegram').markup)).toEqual([
    'See <a href="https://a.example/x">the long page</a> or',
    '<a href="https://a.example/x">another page</a>.',
  ]);
});

test('what follows a cut begins no block of another kind', () => {
  const parts = cutMarkdown('aaaa bbbb cccc - dddd # eeee 1. ffff > gggg', telegram(16));
  expect(parts.map((part) => render(part, 'plain').text).join(' ')).toBe('aaaa bbbb cccc - dddd # eeee 1. ffff > gggg');
});

test('one word of 100 KB is cut between its characters, and an answer that shows nothing is shown as it is', () => {
  const family = '👩‍👩‍👧‍👦';
  const parts = cutMarkdown(family.repeat(4_000), { ...rulesOf('slack', 4_000), maxParts: 40 });
  expect(parts.join('')).toBe(family.repeat(4_000));
  expect(parts.every((part) => part.length % family.length === 0)).toBe(true);
  expect(cutMarkdown('x'.repeat(100_000), { ...telegram(4_096), maxParts: 10 }).at(-1)).toMatch(/^x{4,}\n\n… \(cut\)$/);
  expect(cutMarkdown('[a]: https://a.example', telegram(100)).map((part) => render(part, 'telegram').text)).toEqual(['[a]: https://a.example']);
  expect(cutMarkdown(' \n\u0000', telegram(100))).toEqual([]);
});
