import { expect, test } from 'vitest';
import { type CsvValue, toCsv } from './csv.ts';

test('quotes what RFC 4180 requires, and ends each line with CRLF', () => {
  expect(
    toCsv([
      ['name', 'cost'],
      ['a,b', 1.5],
      ['say "hi"', null],
      ['two\nlines', true],
    ]),
  ).toBe('name,cost\r\n"a,b",1.5\r\n"say ""hi""",\r\n"two\nlines",true\r\n');
});

test.each<[CsvValue, string]>([
  ['=HYPERLINK("http://x")', `"'=HYPERLINK(""http://x"")"`],
  ['+1', `'+1`],
  ['-2+3', `'-2+3`],
  ['@SUM(A1)', `'@SUM(A1)`],
  ['\t=1', `'\t=1`],
  ['\r=1', `"'\r=1"`],
  ['＝1', `'＝1`],
  [-2, '-2'],
  ['a=1', 'a=1'],
  [undefined, ''],
])('writes %j as %j', (value, field) => {
  expect(toCsv([[value]])).toBe(`${field}\r\n`);
});
