import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, test, vi } from 'vitest';
import { linkHost, safeLink } from './links.ts';

// Links to pages of the dashboard need an address to start from.
vi.stubGlobal('location', { pathname: '/chat' });
vi.stubGlobal('addEventListener', () => {});
const { Markdown } = await import('./markdown.tsx');

const draw = (text: string): string => renderToStaticMarkup(createElement(Markdown, { text }));

/** Returns the names of all elements rendered from a text. */
function elementsOf(markup: string): Set<string> {
  return new Set([...markup.matchAll(/<([a-z0-9]+)/g)].map(([, name]) => name ?? ''));
}

const drawn = new Set(
  'div p h3 h4 h5 h6 ul ol li strong em del code pre figure figcaption span button svg path a br hr blockquote table thead tbody tr th td'.split(' '),
);

describe('a message cannot', () => {
  test.each([
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    'text <img src="https://canary.invalid/x.png"> text',
    '<iframe src="javascript:alert(1)"></iframe>',
    '<svg onload=alert(1)>',
    '<a href="javascript:alert(1)">click</a>',
    '<style>@import "https://canary.invalid/x.css"</style>',
    '<form action="https://canary.invalid"><input name=q></form>',
    '<!--<img src=x onerror=alert(1)>-->',
    '<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>',
    '[click](javascript:alert(1))',
    '[click](JaVaScRiPt:alert(1))',
    '[click](java\tscript:alert(1))',
    '[click](data:text/html,<script>alert(1)</script>)',
    '[click](vbscript:msgbox(1))',
    '[click](file:///etc/passwd)',
    '[click](blob:https://canary.invalid/1)',
    '[click](&#106;avascript:alert(1))',
    '<javascript:alert(1)>',
    '[ref]\n\n[ref]: javascript:alert(1)',
    '![x](javascript:alert(1))',
    '![secret words](https://canary.invalid/?q=secret)',
    '![x](https://canary.invalid/x.png "onerror=alert(1)")',
    '[x](https://ok.invalid "\\" onmouseover=\\"alert(1)")',
    '`<img src=x onerror=alert(1)>`',
    '```html\n<script>alert(1)</script>\n```',
    '```"><script>alert(1)</script>\nx\n```',
    '| a |\n| --- |\n| <img src=x onerror=alert(1)> |',
    '- [ ] <script>alert(1)</script>',
    '> <script>alert(1)</script>',
    '# <img src=x onerror=alert(1)>',
    '&lt;script&gt;alert(1)&lt;/script&gt;',
  ])('create elements other than text: %s', (text) => {
    const markup = draw(text);
    const unexpected = [...elementsOf(markup)].filter((name) => !drawn.has(name));
    expect(unexpected).toEqual([]);
    // Attributes come from the renderer only; those in the text are escaped.
    for (const [, attributes = ''] of markup.matchAll(/<[a-z0-9]+((?:\s[^<>]*)?)>/g))
      expect(attributes).not.toMatch(/\s(on\w+|style|src|srcset|action|formaction)=/i);
    for (const [, href = ''] of markup.matchAll(/href="([^"]*)"/g)) expect(href).toMatch(/^(https?:\/\/|mailto:)/);
  });

  test('exhaust the page', () => {
    const deep = `${'> '.repeat(300)}deep`;
    expect(draw(deep)).toContain('deep');
    expect(draw(`${'*'.repeat(2000)}a${'*'.repeat(2000)}`)).toContain('a');
    expect(draw(`${'['.repeat(3000)}x`)).toContain('x');
  });
});

describe('a message', () => {
  test('links to the web without sending a referrer', () => {
    expect(draw('[docs](https://example.com/a?b=c)')).toContain(
      '<a href="https://example.com/a?b=c" target="_blank" rel="noopener noreferrer nofollow" title="https://example.com/a?b=c">docs</a>',
    );
    expect(draw('https://example.com and ada@example.com')).toMatch(/href="https:\/\/example\.com\/".*href="mailto:ada@example\.com"/s);
  });

  test('shows an image as a link with its host', () => {
    const markup = draw('![a chart](https://pictures.example/chart.png)');
    expect(markup).toContain('Image: a chart (pictures.example)');
    expect(markup).not.toContain('<img');
  });

  test('shows HTML as text', () => {
    expect(draw('a <b>bold</b> word')).toContain('a &lt;b&gt;bold&lt;/b&gt; word');
  });

  test('renders text, lists, tables and code', () => {
    expect(draw('# One\n\ntwo **three** *four* ~~five~~ `six`')).toBe(
      '<div class="markdown"><h3 dir="auto">One</h3><p dir="auto">two <strong>three</strong> <em>four</em> <del>five</del> <code>six</code></p></div>',
    );
    expect(draw('3. a\n4. b')).toContain('<ol dir="auto" start="3"><li>a</li><li>b</li></ol>');
    expect(draw('- [x] done\n- [ ] open')).toMatch(/aria-label="Done">☑ <\/span>done.*aria-label="Open">☐ <\/span>open/s);
    expect(draw('| a | b |\n| --- | ---: |\n| 1 | 2 |')).toContain('<td data-align="right">2</td>');
    expect(draw('```ts\nconst a = "<b>";\n```')).toContain('<code>const a = &quot;&lt;b&gt;&quot;;</code>');
    expect(draw('fish &amp; chips &#8364; &unknown;')).toContain('fish &amp; chips € &amp;unknown;');
  });

  test('renders incomplete text as far as it goes', () => {
    expect(draw('```py\nprint(')).toContain('<code>print(</code>');
    expect(draw('a **bold')).toContain('a **bold');
  });
});

test('accepts only web and mail links', () => {
  expect(['https://a.example', 'http://a.example/x', 'mailto:ada@a.example'].map(safeLink)).toEqual([
    'https://a.example/',
    'http://a.example/x',
    'mailto:ada@a.example',
  ]);
  for (const href of ['/chat', '//a.example', 'chat', '#x', 'javascript:1', ' javascript:1', 'data:,x', 'ftp://a.example', ''])
    expect(safeLink(href)).toBeUndefined();
  expect(linkHost('https://a.example:8080/x')).toBe('a.example:8080');
});
