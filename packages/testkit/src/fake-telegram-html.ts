export interface TelegramEntity {
  readonly type: string;
  readonly offset: number;
  readonly length: number;
  readonly url?: string;
  readonly language?: string;
}

/** A text as people see it, or the description of the refusal. */
export type ParsedHtml = { readonly text: string; readonly entities: readonly TelegramEntity[] } | { readonly refusal: string };

/** Types of entities by tag. */
const types: Readonly<Record<string, string>> = {
  b: 'bold',
  strong: 'bold',
  i: 'italic',
  em: 'italic',
  u: 'underline',
  ins: 'underline',
  s: 'strikethrough',
  strike: 'strikethrough',
  del: 'strikethrough',
  'tg-spoiler': 'spoiler',
  span: 'spoiler',
  a: 'text_link',
  code: 'code',
  pre: 'pre',
  blockquote: 'blockquote',
  'tg-emoji': 'custom_emoji',
};
const named: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"' };

interface Open {
  readonly tag: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly at: number;
}

/** Reads HTML as the Bot API does: a tag that it does not know, does not match or is not closed refuses the whole text. */
export function parseTelegramHtml(html: string): ParsedHtml {
  let text = '';
  const open: Open[] = [];
  const entities: TelegramEntity[] = [];
  const refuse = (what: string): ParsedHtml => ({ refusal: `Bad Request: can't parse entities: ${what}` });
  for (let at = 0; at < html.length;) {
    const offset = Buffer.byteLength(html.slice(0, at));
    const character = html[at] ?? '';
    if (character === '&') {
      // The semicolon may be missing.
      const [whole = '&', name = ''] = /^&(#x[0-9a-f]{1,6}|#\d{1,7}|[a-z]+);?/i.exec(html.slice(at)) ?? [];
      text += whole === '&' ? '&' : (decoded(name) ?? whole);
      at += whole.length;
      continue;
    }
    if (character !== '<') {
      text += character;
      at += 1;
      continue;
    }
    const end = html.indexOf('>', at);
    if (end === -1) return refuse(`Unclosed start tag at byte offset ${offset}`);
    const inside = html.slice(at + 1, end);
    at = end + 1;
    if (inside.startsWith('/')) {
      const tag = inside.slice(1).trim().toLowerCase();
      const last = open.pop();
      if (last === undefined) return refuse(`Unexpected end tag at byte offset ${offset}`);
      if (tag !== '' && tag !== last.tag) return refuse(`Unmatched end tag at byte offset ${offset}, expected "</${last.tag}>", found "</${tag}>"`);
      const entity = entityOf(last, text.length);
      const inner = entities.at(-1);
      // A block of code with a language is one entity.
      const isBlock = entity?.type === 'pre' && inner?.type === 'code' && inner.offset === entity.offset && inner.length === entity.length;
      if (isBlock) entities.splice(-1, 1, { ...inner, type: 'pre' });
      else if (entity !== undefined) entities.push(entity);
      continue;
    }
    const tag = /^[a-z0-9-]*/i.exec(inside)?.[0].toLowerCase() ?? '';
    if (tag === '') return refuse(`Unsupported start tag "${inside.slice(0, 8)}" at byte offset ${offset}`);
    const attributes = attributesOf(inside.slice(tag.length));
    if (attributes === undefined) return refuse(`Unexpected symbols in the start tag "${tag}" at byte offset ${offset}`);
    if (!Object.hasOwn(types, tag)) return refuse(`Unsupported start tag "${tag}" at byte offset ${offset}`);
    if (tag === 'span' && attributes.get('class') !== 'tg-spoiler') return refuse(`Tag "span" must have class "tg-spoiler" at byte offset ${offset}`);
    open.push({ tag, attributes, at: text.length });
  }
  const left = open.at(-1);
  if (left !== undefined) return refuse(`Can't find end tag corresponding to start tag "${left.tag}"`);
  return trimmed(text, entities);
}

function decoded(name: string): string | undefined {
  if (!name.startsWith('#')) return named[name];
  const code = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
  return code > 0 && code <= 0x10_ff_ff ? String.fromCodePoint(code) : undefined;
}

/** Returns undefined when what is in a tag is not a list of attributes. */
function attributesOf(text: string): ReadonlyMap<string, string> | undefined {
  const attributes = new Map<string, string>();
  let rest = text;
  while (rest.trim() !== '') {
    const found = /^\s+([a-z-]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([\w.:/-]+)))?/i.exec(rest);
    if (found === null) return undefined;
    attributes.set(
      (found[1] ?? '').toLowerCase(),
      (found[2] ?? found[3] ?? found[4] ?? '').replaceAll(/&(\w+);/g, (whole, name: string) => named[name] ?? whole),
    );
    rest = rest.slice(found[0].length);
  }
  return attributes;
}

/** An empty entity, and a link without an address, are left out. */
function entityOf({ tag, attributes, at }: Open, end: number): TelegramEntity | undefined {
  const type = types[tag] ?? '';
  const length = end - at;
  if (length === 0) return undefined;
  const url = attributes.get('href');
  if (tag === 'a') return url === undefined ? undefined : { type, offset: at, length, url };
  const language = /^language-(.+)$/.exec(attributes.get('class') ?? '')?.[1];
  return { type, offset: at, length, ...(tag === 'code' && language !== undefined && { language }) };
}

function trimmed(text: string, entities: readonly TelegramEntity[]): ParsedHtml {
  const start = text.length - text.trimStart().length;
  const shown = text.trim();
  const kept = entities.flatMap((entity) => {
    const from = Math.max(0, entity.offset - start);
    const to = Math.min(shown.length, entity.offset - start + entity.length);
    return to > from ? [{ ...entity, offset: from, length: to - from }] : [];
  });
  return { text: shown, entities: kept.toSorted((a, b) => a.offset - b.offset || b.length - a.length) };
}
