import { describe, expect, test } from 'vitest';
import type { TextFlavour } from '../port.ts';
import { render } from './render.ts';
import { faultOfDiscord, faultOfEmail, faultOfMatrix, faultOfSlack, faultOfTelegram } from './testing/checkers.ts';

const markupOf = (source: string, flavour: TextFlavour): string | undefined => render(source, flavour).markup;
const bodyOf = (source: string): string | undefined => /<body>(.*)<\/body>/s.exec(markupOf(source, 'email') ?? '')?.[1];

const sample = [
  '# Title',
  'Some **bold**, *slanted* and ~~old~~ text with `a < b` and [a page](https://a.example/?x=1&y=2).',
  '- one\n- [x] two\n  1. deep',
  '> said',
  '```ts\nif (a < b) {}\n```',
  '| a | b |\n| --- | --- |\n| long cell | `c` |',
].join('\n\n');

describe('an answer', () => {
  test('is HTML with few tags for Telegram', () => {
    expect(markupOf(sample, 'telegram')).toBe(
      [
        '<b>Title</b>',
        'Some <b>bold</b>, <i>slanted</i> and <s>old</s> text with <code>a &lt; b</code> and <a href="https://a.example/?x=1&amp;y=2">a page</a>.',
        '• one\n• ☑ two\n  1. deep',
        '<blockquote>said</blockquote>',
        '<pre><code class="language-ts">if (a &lt; b) {}</code></pre>',
        '<pre>a          b\n---------  -\nlong cell  c</pre>',
      ].join('\n\n'),
    );
  });

  test('is mrkdwn for Slack', () => {
    expect(markupOf(sample, 'slack')).toBe(
      [
        '*Title*',
        'Some *bold*, _slanted_ and ~old~ text with `a &lt; b` and <https://a.example/?x=1&amp;y=2|a page>.',
        '• one\n• ☑ two\n  1. deep',
        '&gt; said',
        '```\nif (a &lt; b) {}\n```',
        '```\na          b\n---------  -\nlong cell  c\n```',
      ].join('\n\n'),
    );
  });

  test('is Markdown for Discord, with tables as code', () => {
    expect(markupOf(sample, 'discord')).toBe(
      [
        '# Title',
        'Some **bold**, *slanted* and ~~old~~ text with `a < b` and [a page](https://a.example/?x=1&y=2).',
        '- one\n- ☑ two\n  1. deep',
        '> said',
        '```ts\nif (a < b) {}\n```',
        '```\na          b\n---------  -\nlong cell  c\n```',
      ].join('\n\n'),
    );
  });

  test('is HTML for Matrix and for mail, where it is a whole document', () => {
    const html = [
      '<h1>Title</h1>',
      '<p>Some <strong>bold</strong>, <em>slanted</em> and <del>old</del> text with <code>a &lt; b</code> and <a href="https://a.example/?x=1&amp;y=2">a page</a>.</p>',
      '<ul><li>one</li><li>☑ two<ol><li>deep</li></ol></li></ul>',
      '<blockquote><p>said</p></blockquote>',
      '<pre><code class="language-ts">if (a &lt; b) {}</code></pre>',
      '<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>long cell</td><td><code>c</code></td></tr></tbody></table>',
    ].join('');
    expect(markupOf(sample, 'matrix')).toBe(html);
    expect(bodyOf(sample)).toBe(html);
  });

  test('has a text without markup on every platform', () => {
    const text = [
      'Title',
      'Some bold, slanted and old text with a < b and a page <https://a.example/?x=1&y=2>.',
      '- one\n- ☑ two\n  1. deep',
      '> said',
      'if (a < b) {}',
      'a | b\nlong cell | c',
    ].join('\n\n');
    for (const flavour of ['plain', 'telegram', 'slack', 'discord', 'matrix', 'email'] as const) expect(render(sample, flavour).text).toBe(text);
    expect(render(sample, 'plain').markup).toBeUndefined();
  });
});

const hostile = [
  '<!channel> <@U123> <#C1> <!everyone> <!subteam^S1>',
  '\\<!channel\\> \\@channel @here @EVERYONE &#64;channel @**channel**',
  '&lt;!channel&gt; &#60;!here&#62; &#x3c;@U1&#x3e;',
  '`<!channel>` `@channel`',
  '```\n<!channel> @channel\n```',
  '[<!channel>](https://a.example) [x](https://a.example/|<!channel>) [x](https://a.example/@channel)',
  '<https://a.example|@channel>',
  '<script>alert(1)</script><img src=x onerror=alert(1)>',
  '<div>\n<script>\n</div>',
  '<!-- <b> -->',
  '<div>\n[a](javascript:alert(1))\n</div>',
  '[a](javascript:alert(1)) [a](JaVaScRiPt:alert(1)) [a](data:text/html,x) [a](&#106;avascript:alert(1)) <javascript:alert(1)>',
  '[ref]\n\n[ref]: javascript:alert(1)',
  '![x](https://a.example/x.png "onerror=alert(1)") ![x](javascript:alert(1))',
  '[x](https://a.example/"onmouseover="alert(1)) [x](<https://a.example/ "\'<>>)',
  '```"><script>\nx\n```',
  '</pre></code></b><b>',
  '> > > quote\n> ```\n> open',
  '``` a ``` \\`\\`\\` `` ` `` ```',
  '| <b> | a \\| b |\n| --- | --- |\n| </td> | ``` |',
  '**a\nb** ~~a\n\nb~~ *a **b*** c**',
  `${'> '.repeat(300)}deep`,
  `${'- '.repeat(300)}deep`,
  `${'*'.repeat(500)}a${'*'.repeat(500)}`,
];

describe.each([
  ['telegram', faultOfTelegram],
  ['slack', faultOfSlack],
  ['discord', faultOfDiscord],
  ['matrix', faultOfMatrix],
  ['email', faultOfEmail],
] as const)('on %s an answer cannot', (flavour, faultOf) => {
  test.each(hostile)('be more than text: %s', (source) => {
    const { markup = '' } = render(source, flavour);
    expect(faultOf(markup)).toBeUndefined();
    expect(markup).not.toBe('');
  });
});

test('the checkers find faults', () => {
  for (const html of ['<script>', '<b>', '</b>', 'a & b', 'a < b', '<a href="javascript:x">y</a>', '<b onclick="x">y</b>', '<b><i></b></i>'])
    for (const faultOf of [faultOfTelegram, faultOfMatrix]) expect(faultOf(html)).toBeDefined();
  expect(faultOfTelegram('<blockquote><blockquote></blockquote></blockquote>')).toBeDefined();
  expect(faultOfEmail('<p>x</p>')).toBeDefined();
  for (const text of ['<!channel>', '<@U1>', '@channel', 'a & b', '<javascript:x|y>', '```']) expect(faultOfSlack(text)).toBeDefined();
  for (const text of ['[a](javascript:x)', '```\nx']) expect(faultOfDiscord(text)).toBeDefined();
});

test('a path of a file is text', () => {
  for (const flavour of ['plain', 'telegram', 'slack', 'discord'] as const) {
    const { text, markup = text } = render('MEDIA:/etc/passwd', flavour);
    expect([text, markup]).toEqual(['MEDIA:/etc/passwd', 'MEDIA:/etc/passwd']);
  }
  expect(markupOf('MEDIA:/etc/passwd', 'matrix')).toBe('<p>MEDIA:/etc/passwd</p>');
});

test('mentions of everybody are broken for Slack', () => {
  expect(markupOf('\\@channel, @here and me@here-we-go.example', 'slack')).toBe('@\u2060channel, @\u2060here and me@here-we-go.example');
});

test('control characters are removed, also those that a text refers to; joiners and marks of direction stay', () => {
  const { text, markup } = render('a\u0000b\u001b[31m\u0085 &#0;&#13;&#10;c\td 👩‍👩‍👧‍👦 שלום\u200f \ud800', 'telegram');
  expect(text).toBe('ab[31m    c\td 👩‍👩‍👧‍👦 שלום\u200f \ufffd');
  expect(markup).toBe(text);
});

test('a line of IRC has no line breaks, and its marks stay as they were cut', () => {
  expect(render('**kept** # as\r\nQUIT\u0000 :x\nJOIN #a', 'irc')).toEqual({ text: '**kept** # as QUIT :x JOIN #a' });
});

test('images and links of other kinds show where they lead', () => {
  expect(markupOf('![a chart](https://a.example/c.png) ![](https://a.example/d.png) [notes](./notes.md)', 'telegram')).toBe(
    '<a href="https://a.example/c.png">a chart</a> <a href="https://a.example/d.png">https://a.example/d.png</a> notes (./notes.md)',
  );
  expect(markupOf('[app](tg://resolve?domain=x)', 'telegram')).toBe('<a href="tg://resolve?domain=x">app</a>');
  expect(markupOf('[app](tg://resolve?domain=x)', 'matrix')).toBe('<p>app (tg://resolve?domain=x)</p>');
});

test.each(['_a', 'a_', '[', '![', '> ', '- ', '~a', '<a ', '\\', '`', '*a ', 'a\n', ' '])('100 KB of %j are rendered', (unit) => {
  const source = `x${unit.repeat(Math.ceil(100_000 / unit.length))}y`;
  expect(render(source, 'telegram').text).toMatch(/^x/);
});
