import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { foldingOf, formatLine, parseLine, parseSource } from './line.ts';

test('a line has tags, a source, a command and parameters, of which the last may have spaces', () => {
  expect(parseLine('@time=2026-01-02T03:04:05.000Z;msgid=a\\:b\\s\\\\ :ada!u@host PRIVMSG #lab :hello there')).toEqual({
    tags: new Map([
      ['time', '2026-01-02T03:04:05.000Z'],
      ['msgid', 'a;b \\'],
    ]),
    source: 'ada!u@host',
    command: 'PRIVMSG',
    params: ['#lab', 'hello there'],
  });
  expect(parseLine('ping   token')).toMatchObject({ command: 'PING', params: ['token'] });
  expect(parseLine(':server 005 gate A=b :are supported')).toMatchObject({ command: '005', params: ['gate', 'A=b', 'are supported'] });
  expect([parseLine(''), parseLine(':only'), parseLine('@a=b'), parseLine('not-a-command x')]).toEqual([undefined, undefined, undefined, undefined]);
});

test('no text becomes a second line or another command', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const line = formatLine('PRIVMSG', ['#lab', text]);
      expect(line.endsWith('\r\n')).toBe(true);
      expect(line.slice(0, -2)).not.toMatch(/[\r\n\0]/);
      expect(parseLine(line.slice(0, -2))).toMatchObject({ command: 'PRIVMSG', params: ['#lab', expect.any(String)] });
    }),
  );
  expect(() => formatLine('JOIN', ['#a #b', 'key'])).toThrow(RangeError);
});

test('what is formatted is read as it was', () => {
  const last = fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll(/[\r\n\0]/g, ''));
  const word = last.map((text) => text.replace(/^:/, '').replaceAll(' ', '')).filter((text) => text !== '');
  fc.assert(
    fc.property(fc.array(word), last, word, (words, text, label) => {
      const line = formatLine('PRIVMSG', [...words, text], { label });
      expect(parseLine(line.slice(0, -2))).toEqual({
        tags: new Map([['label', label.replaceAll(/[;\s\\]/g, '_')]]),
        source: '',
        command: 'PRIVMSG',
        params: [...words, text],
      });
    }),
  );
});

test('only spaces divide a line', () => {
  expect(parseLine('PRIVMSG  #lab \u00A0hello\u2003there')).toMatchObject({ params: ['#lab', '\u00A0hello\u2003there'] });
});

test('any line can be read', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(() => parseLine(text)).not.toThrow();
    }),
  );
});

test('names are compared as the network does', () => {
  expect([foldingOf('rfc1459')('Ada[~]'), foldingOf('strict-rfc1459')('Ada[~]'), foldingOf('ascii')('Ada[~]')]).toEqual([
    'ada{^}',
    'ada{~}',
    'ada[~]',
  ]);
  expect(parseSource('ada!u@h')).toEqual({ nick: 'ada', user: 'u', host: 'h' });
  expect(parseSource('irc.test')).toEqual({ nick: 'irc.test', user: '', host: '' });
});
