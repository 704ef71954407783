import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { stem } from './stem.ts';

const beginnings = [
  'a',
  'rel',
  'trad',
  'happ',
  'conn',
  'hop',
  'hopp',
  'fall',
  'siz',
  'fizz',
  'agr',
  'troubl',
  'gener',
  'sky',
  'y',
  'yoy',
  'str',
  'operat',
  'caf',
];
const endings = [
  '',
  's',
  'es',
  'ies',
  'sses',
  'ed',
  'eed',
  'ing',
  'y',
  'ational',
  'tional',
  'enci',
  'anci',
  'izer',
  'logi',
  'bli',
  'alli',
  'entli',
  'eli',
  'ousli',
  'ization',
  'ation',
  'ator',
  'alism',
  'iveness',
  'fulness',
  'ousness',
  'aliti',
  'iviti',
  'biliti',
  'icate',
  'ative',
  'alize',
  'iciti',
  'ical',
  'ful',
  'ness',
  'al',
  'ance',
  'ence',
  'er',
  'ic',
  'able',
  'ible',
  'ant',
  'ement',
  'ment',
  'ent',
  'sion',
  'tion',
  'ion',
  'ou',
  'ism',
  'ate',
  'iti',
  'ous',
  'ive',
  'ize',
  'e',
  'll',
  'l',
  'ingly',
  'edly',
  'ying',
  'zes',
  'é',
  'ß',
];
const words = [...new Set(beginnings.flatMap((beginning) => endings.map((ending) => beginning + ending)))];

test('stems are those of the index, word by word', () => {
  const db = new DatabaseSync(':memory:');
  db.exec(`CREATE VIRTUAL TABLE t USING fts5(body, content='', tokenize='porter unicode61 remove_diacritics 0')`);
  db.exec(`CREATE VIRTUAL TABLE v USING fts5vocab(t, instance)`);
  const insert = db.prepare('INSERT INTO t (rowid, body) VALUES (?, ?)');
  for (const [index, word] of words.entries()) insert.run(index, word);
  const theirs = new Map(
    db
      .prepare('SELECT doc, term FROM v')
      .all()
      .map((row) => [row['doc'], row['term']]),
  );
  expect(theirs.size).toBe(words.length);
  expect(words.filter((word, index) => stem(word) !== theirs.get(index)).map((word) => [word, stem(word), theirs.get(words.indexOf(word))])).toEqual(
    [],
  );
  db.close();
});
