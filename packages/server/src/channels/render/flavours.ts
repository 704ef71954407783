import { type LineMarks, plainMarks, prefixed } from './lines.ts';
import { alignedTable } from './table.ts';
import { linkAddress } from './tree.ts';

const zeroWidthSpace = '\u200b';
const wordJoiner = '\u2060';

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Escapes a text for HTML, also inside of an attribute. */
export const escapeHtml = (text: string): string => text.replaceAll(/[&<>"]/g, (character) => entities[character] ?? '');

const telegramSchemes = new Set(['http:', 'https:', 'tg:']);

/** HTML as Telegram reads it: few tags, and line breaks as they are. */
export const telegramMarks: LineMarks = {
  escape: escapeHtml,
  escaped: escapeHtml,
  strong: (text) => `<b>${text}</b>`,
  em: (text) => `<i>${text}</i>`,
  del: (text) => `<s>${text}</s>`,
  code: (text) => `<code>${escapeHtml(text)}</code>`,
  pre: (text, language) =>
    language === '' ? `<pre>${escapeHtml(text)}</pre>` : `<pre><code class="language-${language}">${escapeHtml(text)}</code></pre>`,
  address: (href) => linkAddress(href, telegramSchemes),
  link: (href, label) => `<a href="${escapeHtml(href)}">${label ?? escapeHtml(href)}</a>`,
  heading: (text) => (text.trim() === '' ? '' : `<b>${text}</b>`),
  // Quotes cannot be nested.
  quote: (text, isNested) => (text === '' ? '' : isNested ? prefixed(text, '&gt; ') : `<blockquote>${text}</blockquote>`),
  table: (cells) => `<pre>${escapeHtml(alignedTable(cells))}</pre>`,
  bullet: '• ',
};

const webSchemes = new Set(['http:', 'https:']);
const webAndMailSchemes = new Set(['http:', 'https:', 'mailto:']);

const brokenFence = `\`${zeroWidthSpace}\`${zeroWidthSpace}\``;

/** A fence inside of a text would begin a block of code, or end it. */
const withoutFences = (text: string): string => text.replaceAll('```', brokenFence);

const escapeSlack = (text: string): string => withoutFences(text.replaceAll(/[&<>]/g, (character) => entities[character] ?? ''));

const groupMention = /@(?=(?:channel|here|everyone)(?![\w-]))/gi;

/**
 * Breaks what some settings of a workspace make mentions of everybody, even as plain text. It is done with the whole markup: a mention can be put
 * together from several tokens.
 */
export const withoutMentions = (markup: string): string => markup.replaceAll(groupMention, `@${wordJoiner}`);

/** Marks do not span lines. */
const eachLine = (text: string, mark: string): string =>
  text.replaceAll(/^([ \t]*)(.*?\S)([ \t]*)$/gm, (_line, before: string, inner: string, after: string) => `${before}${mark}${inner}${mark}${after}`);

/** The format of Slack that is called mrkdwn. */
export const slackMarks: LineMarks = {
  escape: escapeSlack,
  escaped: (character) => (character === '`' ? `\`${zeroWidthSpace}` : escapeSlack(character)),
  strong: (text) => eachLine(text, '*'),
  em: (text) => eachLine(text, '_'),
  del: (text) => eachLine(text, '~'),
  // A backtick cannot be escaped.
  code: (text) => (text.includes('`') ? escapeSlack(text) : `\`${escapeSlack(text)}\``),
  pre: (text) => `\`\`\`\n${escapeSlack(text)}\n\`\`\``,
  address: (href) => linkAddress(href, webAndMailSchemes),
  link(href, label) {
    const address = escapeSlack(href).replaceAll('|', '%7C').replaceAll(groupMention, '%40');
    return label === undefined ? `<${address}>` : `<${address}|${label.replaceAll('\n', ' ')}>`;
  },
  heading: (text) => eachLine(text, '*'),
  quote: (text) => prefixed(text, '&gt; '),
  table: (cells) => `\`\`\`\n${escapeSlack(alignedTable(cells))}\n\`\`\``,
  bullet: '• ',
};

/** Markdown as Discord reads it. */
export const discordMarks: LineMarks = {
  ...plainMarks,
  // Text that looks like a link was not one: its address was not checked.
  escape: (text) => withoutFences(text).replaceAll('](', ']\\('),
  escaped: (character) => `\\${character}`,
  strong: (text) => `**${text}**`,
  em: (text) => `*${text}*`,
  del: (text) => `~~${text}~~`,
  code(text) {
    if (!text.includes('`')) return `\`${text}\``;
    return text.includes('``') ? withoutFences(text) : `\`\` ${text} \`\``;
  },
  pre: (text, language) => `\`\`\`${language}\n${withoutFences(text)}\n\`\`\``,
  address: (href) => linkAddress(href, webSchemes)?.replaceAll('(', '%28').replaceAll(')', '%29'),
  link: (href, label) => (label === undefined ? href : `[${label.replaceAll('\n', ' ')}](${href})`),
  heading: (text, depth) => (depth > 3 || text.includes('\n') ? (text.trim() === '' ? '' : `**${text}**`) : `${'#'.repeat(depth)} ${text}`),
  quote: (text) => prefixed(text, '> '),
  table: (cells) => `\`\`\`\n${withoutFences(alignedTable(cells))}\n\`\`\``,
};
