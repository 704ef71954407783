import { expect, test } from 'vitest';
import { ownText, textOfHtml } from './text.ts';

test.each([
  ['Yes.\n\nOn Mon, 1 Nov 2026 at 10:00, Gate <g@gate.test> wrote:\n> Shall I?\n', 'Yes.'],
  ['Ja.\r\n\r\nAm 01.11.26 um 10:00 schrieb Gate:\r\n> Soll ich?\r\n> \r\n> Gate', 'Ja.'],
  ['Oui.\n\nLe lun. 1 nov. 2026 à 10:00, Gate <g@gate.test> a écrit :\n\n> Dois-je ?', 'Oui.'],
  ['Yes.\n\n-----Original Message-----\nFrom: Gate\nSent: today\n\nShall I?', 'Yes.'],
  ['Yes.\n-- \nAda\nPeople Ltd', 'Yes.'],
])('cuts what is surely not the sender’s: %j', (text, own) => expect(ownText(text)).toBe(own));

test.each([
  '> Shall I?\nYes.\n> And then?\nNo.',
  'Yes.\n> a quotation without a line above it',
  'He wrote:\n> something\nand I disagree',
  'See\n--\nthe line above',
  `Yes.\n-- \n${'many lines\n'.repeat(20)}end`,
  '-----Original Message-----\nFrom: Gate\n\nforwarded without a word',
  'On Mon, Gate wrote:\n> only a quotation',
  'a\n---- Original Message ----\nis what the subject said',
])('keeps what may be the sender’s: %j', (text) => expect(ownText(text)).toBe(text.trim()));

test('converts HTML without what nobody sees', () => {
  const html =
    '<head><title>t</title></head><style>p{}</style><script>alert(1)</script><p>One <b>two</b> <a href="https://x.test/">link</a></p><img src="https://t.test/pixel" alt="A picture"><span style="font-size:0">hidden</span><ul><li>a</li></ul>';
  expect(textOfHtml(html)).toBe('One **two** [link](https://x.test/)\n\nA picture\n\n-   a');
  expect(textOfHtml(`${'<div>'.repeat(50_000)}deep`)).toContain('deep');
});
