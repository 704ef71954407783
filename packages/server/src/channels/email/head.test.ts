import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { isAddress, isMessageId } from './address.ts';
import { answerSubject } from './compose.ts';
import { ignoredReason, parseHead } from './head.ts';

const parse = (text: string) => parseHead(Buffer.from(text.replaceAll('\n', '\r\n')));

test.each([
  ['Ada <Ada@People.test>', { address: 'ada@people.test', name: 'Ada' }],
  ['=?utf-8?q?=C3=84da_=3Ceve=40x=2Etest=3E?= <ada@people.test>', { address: 'ada@people.test', name: 'Äda <eve@x.test>' }],
  ['"eve@x.test, b@c.test" <ada@people.test>', { address: 'ada@people.test', name: 'eve@x.test, b@c.test' }],
  ['ada@people.test', { address: 'ada@people.test', name: 'ada@people.test' }],
  ['ada@people.test, eve@x.test', undefined],
  ['friends: ada@people.test, eve@x.test;', undefined],
  ['"ada@people.test"', undefined],
  ['ada@people.test\nFrom: eve@x.test', undefined],
  ['ada@people.test@x.test', undefined],
  ['ada@people.test <eve@x.test>', undefined],
  ['"Ada (ada@people.test)" <eve@x.test>', { address: 'eve@x.test', name: 'Ada (ada@people.test)' }],
  ['eve@x.test "ada@people.test"', undefined],
  ['(ada@people.test) eve@x.test', undefined],
  ['"a b"@people.test', undefined],
  ['<>', undefined],
])('reads one author, or none: %j', async (from, author) => expect((await parse(`From: ${from}\nSubject: x\n\n`)).from).toEqual(author));

test('reads the thread, without what is not an id', async () => {
  const { messageId, references } = await parse(
    'Message-ID: <c@x>\nIn-Reply-To: <b@x> (comment)\nReferences: <a@x>\n <b@x> junk <with space@x> <c@x>\n\n',
  );
  expect([messageId, references]).toEqual(['<c@x>', ['<a@x>', '<b@x>']]);
});

test.each([
  ['Plans', 'Re: Plans'],
  ['Re: RE: AW:Re[2]: Plans', 'Re: Plans'],
  ['Regarding: plans', 'Re: Regarding: plans'],
  ['Plans\r\nBcc: eve@x.test', 'Re: Plans Bcc: eve@x.test'],
  ['', 'Re: your message'],
])('answers the subject %j', (subject, answer) => expect(answerSubject(subject)).toBe(answer));

test('a header of any text is parsed, in time, and never has two authors', async () => {
  const part = fc.constantFrom(
    'From',
    ': ',
    '\n',
    ' ',
    'a@b.test',
    '<',
    '>',
    ',',
    '"',
    '=?utf-8?q?',
    '?=',
    'Message-ID: ',
    '(',
    '\\',
    ';',
    '\0',
    'é',
  );
  await fc.assert(
    fc.asyncProperty(fc.array(part, { maxLength: 60 }), async (parts) => {
      const head = await parse(parts.join(''));
      expect(head.from === undefined || isAddress(head.from.address)).toBe(true);
      expect(head.messageId === undefined || isMessageId(head.messageId)).toBe(true);
      ignoredReason(head, 'agent@gate.test');
    }),
  );
  for (const text of ['From: a@b.test, ', 'Subject: =?utf-8?q?', 'a: b\n', 'References: <a@b> ', '(', '"']) {
    const { from } = await parse(`From: ${text.repeat(65_536 / text.length)}`);
    expect(from).toBeUndefined();
    await parse(text.repeat(65_536 / text.length));
  }
});
