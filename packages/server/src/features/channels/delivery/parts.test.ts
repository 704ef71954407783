import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { TextRules } from '../../../channels/port.ts';
import { partsOf } from './parts.ts';

const lines: TextRules = { flavour: 'irc', most: 40, unit: 'bytes', isLine: true, maxParts: 5 };
const whole: TextRules = { flavour: 'plain', most: 40, unit: 'utf16', isLine: false, maxParts: 5 };

test('an answer becomes lines without the marks of Markdown, none longer than the platform takes', () => {
  expect(partsOf('# Title\n\nSee [the page](https://a.b) and **this**.\n```sh\n**kept** # as it is\n```', { ...lines, most: 80 })).toEqual([
    'Title',
    'See the page <https://a.b> and this.',
    '**kept** # as it is',
  ]);
  expect(partsOf('one two three four five six seven eight nine ten', lines)).toEqual(['one two three four five six seven eight', 'nine ten']);
});

test('a long answer is cut with a note', () => {
  expect(partsOf(Array.from({ length: 9 }, (_, n) => `line ${n}`).join('\n'), lines)).toEqual(['line 0', 'line 1', 'line 2', 'line 3', '… (cut)']);
});

test.each([
  ['lines', lines],
  ['whole messages', whole],
])('any text fits as %s, without broken characters', (_name, rules) => {
  const size = rules.unit === 'bytes' ? (part: string) => Buffer.byteLength(part) : (part: string) => part.length;
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme', maxLength: 90 }), { maxLength: 12 }), (texts) => {
      const parts = partsOf(texts.join('\n'), rules);
      expect(parts.length).toBeLessThanOrEqual(rules.maxParts);
      for (const part of parts) {
        expect(size(part)).toBeLessThanOrEqual(rules.most);
        expect(part.isWellFormed()).toBe(true);
        if (rules.isLine) expect(part).not.toMatch(/[\r\n\0]/);
        expect(part).not.toBe('');
      }
    }),
  );
});
