interface Tags {
  /** Names of tags with the attributes that they may have. */
  readonly allowed: Readonly<Record<string, Readonly<Record<string, RegExp>>>>;
  readonly empty: readonly string[];
  readonly entities: RegExp;
}

const web = /^https?:\/\//;
const language = /^language-[\w+#.-]{1,24}$/;
const none = {};

const telegramTags: Tags = {
  allowed: { b: none, i: none, u: none, s: none, pre: none, code: { class: language }, a: { href: /^(?:https?|tg):/ }, blockquote: none },
  empty: [],
  entities: /^&(?:lt|gt|amp|quot);/,
};

const matrixTags: Tags = {
  allowed: {
    ...Object.fromEntries(
      'del h1 h2 h3 h4 h5 h6 blockquote p ul li strong em hr br table thead tbody tr th td pre'.split(' ').map((tag) => [tag, none]),
    ),
    a: { href: /^(?:https?|mailto):/ },
    ol: { start: /^\d+$/ },
    code: { class: language },
  },
  empty: ['br', 'hr'],
  entities: /^&(?:lt|gt|amp|quot);/,
};

const emailTags: Tags = {
  ...matrixTags,
  allowed: { ...matrixTags.allowed, html: none, head: none, body: none, meta: { charset: /^utf-8$/ } },
  empty: ['br', 'hr', 'meta'],
};

/** Returns the first fault of HTML for Telegram. */
export function faultOfTelegram(html: string): string | undefined {
  const quotes = /<blockquote>(?:(?!<\/blockquote>)[\s\S])*<blockquote>/;
  const inCode = /<code[^>]*>(?:(?!<\/code>)[\s\S])*<(?!\/code)/;
  if (quotes.test(html)) return 'nested quotes';
  if (inCode.test(html)) return 'a tag inside of code';
  return faultOfHtml(html, telegramTags);
}

export const faultOfMatrix = (html: string): string | undefined => faultOfHtml(html, matrixTags);

export function faultOfEmail(html: string): string | undefined {
  if (!html.startsWith('<!DOCTYPE html><html>') || !html.endsWith('</html>')) return 'not a document';
  return faultOfHtml(html.slice('<!DOCTYPE html>'.length), emailTags);
}

function faultOfHtml(html: string, { allowed, empty, entities }: Tags): string | undefined {
  const open: string[] = [];
  for (let at = 0; at < html.length;) {
    const rest = html.slice(at);
    const [tag, end, name = '', attributes = ''] = /^<(\/?)([a-z][a-z0-9-]*)((?: [a-z]+="[^"<>]*")*)>/.exec(rest) ?? [];
    if (tag !== undefined) {
      const fault = end === '/' ? faultOfEnd(open.pop(), name) : faultOfTag(name, attributes, allowed);
      if (fault !== undefined) return fault;
      if (end !== '/' && !empty.includes(name)) open.push(name);
      at += tag.length;
      continue;
    }
    const [entity] = entities.exec(rest) ?? [];
    if (entity === undefined && /^[&<>]/.test(rest)) return `not escaped: ${rest.slice(0, 20)}`;
    at += entity?.length ?? 1;
  }
  return open.length === 0 ? undefined : `not closed: ${open.join()}`;
}

const faultOfEnd = (last: string | undefined, name: string): string | undefined => (last === name ? undefined : `</${name}> closes ${last}`);

function faultOfTag(name: string, attributes: string, allowed: Tags['allowed']): string | undefined {
  const rules = Object.hasOwn(allowed, name) ? allowed[name] : undefined;
  if (rules === undefined) return `<${name}>`;
  for (const [, key = '', value = ''] of attributes.matchAll(/ ([a-z]+)="([^"]*)"/g))
    if (!Object.hasOwn(rules, key) || rules[key]?.test(value) !== true) return `<${name} ${key}="${value}">`;
  return undefined;
}

/** Returns the first fault of mrkdwn. */
export function faultOfSlack(text: string): string | undefined {
  const plain = text.replaceAll(/<(?:https?:\/\/|mailto:)[^<>|\s]*(?:\|[^<>\n]+)?>/g, '').replaceAll(/&(?:amp|lt|gt);/g, '');
  const [bad] = /[<>&].{0,20}/.exec(plain) ?? [];
  if (bad !== undefined) return `not escaped: ${bad}`;
  if (/@(?:channel|here|everyone)(?![\w-])/i.test(text)) return 'a mention';
  return faultOfFences(text);
}

/** Returns the first fault of Markdown for Discord. */
export function faultOfDiscord(text: string): string | undefined {
  const withoutCode = text.replaceAll(/```[\s\S]*?```/g, '').replaceAll(/(`+)[\s\S]*?\1/g, '');
  for (const [, label = '', href = ''] of withoutCode.matchAll(/(?<!\\)\[([^\]\n]*)\]\(([^)\s]*)\)/g))
    if (!web.test(href)) return `[${label}](${href})`;
  return faultOfFences(text);
}

const faultOfFences = (text: string): string | undefined => (text.split('```').length % 2 === 1 ? undefined : 'a block of code without an end');

const characters: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"' };

/** Returns the letters and digits that markup shows. */
export const visibleOf = (markup: string): string =>
  lettersOf(
    markup
      .replaceAll(/<(?:https?|mailto):[^<>|]*\||<\/?[a-z!][^<>]*>|```[\w+#.-]*\n/gi, '')
      .replaceAll(/&(lt|gt|amp|quot);/g, (_found, name: string) => characters[name] ?? ''),
  );

export const lettersOf = (text: string): string => text.replaceAll(/[^\p{L}\p{N}]/gu, '');
