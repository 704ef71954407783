import { describe, expect, test } from 'vitest';
import { toTextMatch } from '../../../../kernel/db/full-text.ts';
import { rankTexts } from './rank.ts';
import { makeSnippet } from './snippet.ts';
import { titleOf } from '../reading/title.ts';
import { parseTextQuery } from './terms.ts';

const termsOf = (query: string) => parseTextQuery(query)?.terms ?? [];
const marked = (content: string, query: string) => {
  const { text, marks } = makeSnippet(content, termsOf(query));
  return { text, marks: marks.map(({ start, end }) => text.slice(start, end)) };
};

describe('parseTextQuery', () => {
  test.each([
    ['deploy', 'body : "deploy"'],
    ['Deploy  the gate', 'body : "Deploy" AND body : "the" AND body : "gate"'],
    ['"deploy the" gate', 'body : "deploy the" AND body : "gate"'],
    ['a-b', 'body : "a b"'],
    // Index query syntax is neutralised.
    ['part:a0 OR body:*', 'body : "part a0" AND body : "OR" AND body : "body"'],
    ['NEAR(a b) ^c -d "', 'body : "NEAR a" AND body : "b" AND body : "c" AND body : "d"'],
    ['x"y', 'body : "x" AND body : "y"'],
    [`a\0b`, 'body : "a b"'],
  ])('%j', (query, match) => {
    expect(toTextMatch({ phrases: parseTextQuery(query)?.phrases ?? [], filters: [] }).match).toBe(match);
  });

  test.each(['', '  ', '???', '""', '" "', '*:^'])('%j contains no word', (query) => {
    expect(parseTextQuery(query)).toBeUndefined();
  });

  test('terms beyond the limit are ignored', () => {
    expect(parseTextQuery(Array.from({ length: 40 }, (_, i) => `w${i}`).join(' '))?.terms).toHaveLength(16);
  });
});

describe('makeSnippet', () => {
  test('marks the words in any form, case and accent', () => {
    expect(marked('We DEPLOYED the Café yesterday; deploying cafes is fun', 'deploy café')).toEqual({
      text: 'We DEPLOYED the Café yesterday; deploying cafes is fun',
      marks: ['DEPLOYED', 'Café', 'deploying', 'cafes'],
    });
  });

  test('a phrase is marked as a whole, its separate words are not', () => {
    expect(marked('gate one, then one gate', '"one gate"').marks).toEqual(['one gate']);
  });

  test('shows the text around the hit, at most 200 characters on one line', () => {
    const { text, marks } = marked(`${'filler words\n\n'.repeat(400)}needle here ${'and more '.repeat(400)}`, 'needle');
    expect([...text].length).toBeLessThanOrEqual(200);
    expect(text).toMatch(/^….*needle here.*…$/);
    expect(marks).toEqual(['needle']);
  });

  test('never cuts a code point', () => {
    const { text } = marked('😀'.repeat(500), 'absent');
    expect(text.isWellFormed()).toBe(true);
    expect([...text]).toHaveLength(200);
    expect(marked(`${'😀'.repeat(300)}x needle ${'😀'.repeat(500)}`, 'needle').text.isWellFormed()).toBe(true);
  });
});

test('a text about the terms ranks above one that mentions them', () => {
  const terms = termsOf('gate key');
  const [about, passing, none] = rankTexts(['gate key gate key', `gate key ${'other words '.repeat(60)}`, 'nothing'], terms);
  expect(about).toBeGreaterThan(passing ?? 1);
  expect(passing).toBeGreaterThan(none ?? 1);
  expect(none).toBe(0);
  expect(about).toBeLessThan(1);
});

describe('titleOf', () => {
  const user = (content: string) => titleOf({ role: 'user', content });
  test.each([
    ['  What is\n\na   gateway? ', 'What is a gateway?'],
    ['', null],
    [' \n ', null],
  ])('%j', (content, title) => {
    expect(user(content)).toBe(title);
  });
  test('is at most 80 characters, truncated between words, with whole code points', () => {
    expect(user('word '.repeat(100))).toBe(`${'word '.repeat(16).trim()}…`);
    for (const content of ['😀'.repeat(500), `${'x'.repeat(399)}😀`, 'y'.repeat(81)]) {
      const title = user(content) ?? '';
      expect(title.isWellFormed()).toBe(true);
      expect([...title].length).toBeLessThanOrEqual(80);
    }
  });
  test('only user messages have one', () => {
    expect(titleOf({ role: 'assistant', content: 'hello' })).toBeNull();
    expect(titleOf(undefined)).toBeNull();
  });
});
