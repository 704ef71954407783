import { expect, test } from 'vitest';
import { textOfHtml } from './html.ts';
import { ownText } from './text.ts';

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

test.each([
  [
    '<head><title>t</title></head><style>p{}</style><script>alert(1)</script><p>One <b>two</b>\n <a href="https://x.test/?a=1&amp;b=2">link</a></p><img src="https://t.test/pixel" alt="A picture"><ul><li>a<li>b</ul>',
    'One two link (https://x.test/?a=1&b=2)\n\nA picture\n\n- a\n- b',
  ],
  [
    'a<span style="font-size:0">hidden <span>deep</span></span>b<div hidden>c</div><p style=\'display: none\'>d</p><!-- e --><i aria-hidden="true">f</i>',
    'ab',
  ],
  [
    '<div>Yes.</div><div>On Mon, Gate wrote:<br><blockquote type="cite"><p>Shall I?</p><p>Gate</p></blockquote></div>',
    'Yes.\nOn Mon, Gate wrote:\n\n> Shall I?\n>\n> Gate',
  ],
  ['1 < 2 &lt;b&gt; &auml;&hellip; &#x1F600; x&nbsp;y', '1 < 2 <b> ä… 😀 x y'],
  ['<pre>a\n  b</pre><table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>', 'a\n  b\n\n1 2\n3'],
  ['<a href="javascript:alert(1)">x</a> <a title="a > b" href=https://y.test>y</a>', 'x y (https://y.test)'],
  ['seen<div style="display:none"', 'seen'],
])('converts HTML to what a reader sees: %j', (html, text) => expect(textOfHtml(html)).toBe(text));

test.each([
  '<div>',
  '<',
  '<b id="',
  '<p><b x>',
  '<blockquote>',
  '<!--',
  '</p>',
  '<a href=https://x.test>a</a>',
  '<span hidden>',
  "<x y='",
  '&amp;',
  ' \n',
])('converts HTML that is hard to parse: %j', (part) => expect(textOfHtml(part.repeat(200_000)).length).toBeLessThanOrEqual(1_500_000));

test.each(['>', 'On ', 'wrote:\n', '> \n', '-- \n', '----', ' \t', '-----Original Message-----\n'])('cuts texts that are hard to read: %j', (part) =>
  expect(ownText(part.repeat(200_000)).length).toBeLessThanOrEqual(part.length * 200_000),
);
