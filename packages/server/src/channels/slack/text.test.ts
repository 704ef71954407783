import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { emojiName } from './emoji.ts';
import { isTrustedHost } from './hosts.ts';
import { escapeText, toPlainText, withoutLeadingMention, withoutMentions } from './text.ts';

const names = { userName: (id: string) => (id === 'U1' ? 'Ada' : undefined) };

test.each([
  ['<@U1> and <@U2> and <@U3|eve>', '@Ada and @U2 and @eve'],
  ['<#C1|general> <#C2>', '#general #C2'],
  ['<!here> <!channel> <!subteam^S1|@cooks> <!subteam^S1>', '@here @channel @cooks @group'],
  ['<!date^1392734382^{date}|18 February>', '18 February'],
  ['<https://x.test/?a=1&amp;b=2>', 'https://x.test/?a=1&b=2'],
  ['<https://x.test|docs> <http://x.test|x.test> <mailto:a@x.test|a@x.test>', 'docs (https://x.test) http://x.test a@x.test'],
  ['1 &lt; 2 &amp;&amp; 3 &gt; 2 &amp;lt;', '1 < 2 && 3 > 2 &lt;'],
  ['a < b', 'a < b'],
])('%s is plain: %s', (markup, plain) => {
  expect(toPlainText(markup, names)).toBe(plain);
});

test('what is escaped is plain text again, whatever it is', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      expect(toPlainText(escapeText(text), names)).toBe(text);
    }),
  );
  fc.assert(
    fc.property(fc.string(), (text) => {
      expect(withoutMentions(`${text}<!channel><@U1>`)).not.toMatch(/<[!@#]/);
    }),
  );
});

test('only the mention at the beginning is removed', () => {
  expect(withoutLeadingMention(' <@U1|ada>:  hi <@U1>', 'U1')).toBe('hi <@U1>');
  expect(withoutLeadingMention('hi <@U1>', 'U1')).toBe('hi <@U1>');
  expect(withoutLeadingMention('<@U12> hi', 'U1')).toBe('<@U12> hi');
});

test('emoji have the names of Slack', () => {
  expect(['👍', '❤️', '❤', ':tada:', 'thumbsup', ':wave::skin-tone-3:', '🦣', '::', 'A B', ''].map(emojiName)).toEqual([
    '+1',
    'heart',
    'heart',
    'tada',
    'thumbsup',
    'wave::skin-tone-3',
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

test.each([
  ['https://files.slack.com/x', true],
  ['https://slack.com/x', true],
  ['https://api.test/x', true],
  ['http://files.slack.com/x', false],
  ['https://slack.com.evil.test/x', false],
  ['https://evilslack.com/x', false],
  ['https://u:p@files.slack.com/x', false],
  ['http://api.test/x', false],
  ['nonsense', false],
])('%s is trusted: %s', (url, isTrusted) => {
  expect(isTrustedHost(url, 'https://api.test/api/')).toBe(isTrusted);
});
