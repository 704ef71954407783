import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import { counted, pickLanguage, t, tx } from './language.ts';

test.each([
  [['de-CH', 'en'], 'de'],
  [['nl', 'de', 'en'], 'de'],
  [['en-GB', 'de'], 'en'],
  [['nl', 'xx-YY'], 'en'],
  [['zh-SG', 'en'], 'zh-CN'],
  [['zh', 'en'], 'zh-CN'],
  [['zh-TW', 'zh', 'de', 'en'], 'de'],
  [['zh-Hant-HK', 'zh-CN', 'en'], 'zh-CN'],
  [['zh-TW', 'zh', 'not a tag'], 'en'],
  [[], 'en'],
])('picks for %j the language %s', (tags, language) => expect(pickLanguage(tags)).toBe(language));

test('replaces placeholders by values as they are, even with braces and dollars in them', () => {
  expect(t('Delete {name} of {agent}', { name: '{agent} $&', agent: 'scout' })).toBe('Delete {agent} $& of scout');
  expect(t('{other} and {toString}', { name: 'x' })).toBe('{other} and {toString}');
  expect(renderToStaticMarkup(tx('Open {link} of {name}.', { link: 'the page', name: '<b>' }))).toBe('Open the page of &lt;b&gt;.');
});

test('counts in English without a catalogue', () => {
  expect([counted(1, '1', 'delivery', 'deliveries'), counted(1200, '1,200', 'delivery', 'deliveries')]).toEqual(['1 delivery', '1,200 deliveries']);
});
