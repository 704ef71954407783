import { expect, test } from 'vitest';
import { judgeCatalogue, messagesIn } from './messages.ts';

test('finds the texts of calls, and their plural forms', () => {
  const { texts, faults } = messagesIn(
    'a.tsx',
    "const a = <p title={t('Open')}>{tx('In {link}', { link: <b /> })} {plural(n, 'delivery', 'deliveries')}</p>;",
  );
  expect([Object.fromEntries(texts), faults]).toEqual([{ Open: false, 'In {link}': false, '{count} delivery': true }, []]);
});

test.each([
  ['<p>Not wrapped</p>', /^a\.tsx:1: "Not wrapped" is not wrapped$/],
  ['<>\n  Text {n}\n</>', /"Text" is not wrapped/],
  ['<Page title="Runs" />', /title="Runs" is not wrapped/],
  ["<p aria-label={'Runs'} />", /aria-label="Runs" is not wrapped/],
  ['t(`Delete ${name}`)', /the text of t\(\) is not a literal/],
  ['plural(n, noun)', /the noun of plural\(\) is not a literal/],
])('refuses %j', (source, fault) => expect(messagesIn('a.tsx', source).faults).toEqual([expect.stringMatching(fault)]));

test.each(['<code>session.list</code>', '<p>Gatehouse</p>', '<p>· {n} / 3</p>', '<img alt="" />', '<input placeholder="https://example.com" />'])(
  'accepts %j',
  (source) => expect(messagesIn('a.tsx', source).faults).toEqual([]),
);

const texts = new Map([
  ['Delete {name}', false],
  ['{count} file', true],
]);

test('accepts a complete catalogue, with the plural forms of its language', () => {
  expect(
    judgeCatalogue('de', { 'Delete {name}': '{name} löschen', '{count} file': { one: '{count} Datei', other: '{count} Dateien' } }, texts),
  ).toEqual([]);
  expect(judgeCatalogue('ja', { 'Delete {name}': '{name} を削除', '{count} file': { other: '{count} 件のファイル' } }, texts)).toEqual([]);
});

test.each([
  [{}, ['de: no translation of "Delete {name}"', 'de: no translation of "{count} file"']],
  [{ 'Delete {name}': '', '{count} file': { one: '{count} D', other: '{count} D' } }, ['de: no translation of "Delete {name}"']],
  [
    { 'Delete {name}': '{nmae} löschen', '{count} file': { one: '{count} D', other: '{count} D' } },
    ['de: "{nmae} löschen" has not the placeholders of "Delete {name}"'],
  ],
  [{ 'Delete {name}': '{name} löschen', '{count} file': { other: '{count} D' } }, ['de: "{count} file" lacks the form one']],
  [{ 'Delete {name}': '{name} löschen', '{count} file': { one: '{count} D', other: '{count} D' }, Gone: 'Weg' }, ['de: "Gone" is not in the code']],
] as const)('refuses the catalogue %j', (catalogue, faults) => expect(judgeCatalogue('de', catalogue, texts)).toEqual(faults));
