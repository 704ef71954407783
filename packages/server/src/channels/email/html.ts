import { createDocument } from '@mixmark-io/domino';

/** Longest HTML that is converted; more is cut. */
const maxHtml = 500_000;
const maxUrl = 500;
const maxQuotes = 8;

/** Elements whose content nobody sees, and which is therefore a place to hide instructions for a model. */
const unread: ReadonlySet<string> = new Set(
  'head script style title noscript template iframe object embed svg canvas textarea select audio video map'.split(' '),
);
const invisible =
  /(?:^|\s)(?:hidden|aria-hidden\s*=\s*["']?true)(?:\s|$|["'/=])|display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0(?:\.0+)?\s*(?:;|"|'|$)|font-size\s*:\s*0|mso-hide\s*:\s*all/i;
const empty: ReadonlySet<string> = new Set('area base br col embed hr img input link meta source track wbr'.split(' '));
const paragraphs: ReadonlySet<string> = new Set('p h1 h2 h3 h4 h5 h6 ul ol dl table pre blockquote hr section article header footer'.split(' '));
const lines: ReadonlySet<string> = new Set('div tr li dt dd address figure figcaption caption'.split(' '));

interface Tag {
  readonly name: string;
  readonly isEnd: boolean;
  readonly attributes: string;
}

/**
 * Converts the HTML of a mail to plain text. In one pass, without building a document: the time that a parser takes for unfavorable HTML grows with
 * the square of its length, and anybody can send it.
 */
export function textOfHtml(html: string): string {
  const writer = new Writer();
  const source = html.slice(0, maxHtml);
  let hidden: { readonly name: string; depth: number } | undefined;
  for (let at = 0; at < source.length;) {
    const start = source.indexOf('<', at);
    if (hidden === undefined) writer.text(source.slice(at, start === -1 ? undefined : start));
    if (start === -1) break;
    if (!/[a-z/!?]/i.test(source.charAt(start + 1))) {
      if (hidden === undefined) writer.text('&lt;');
      at = start + 1;
      continue;
    }
    at = endOfTag(source, start);
    const tag = parseTag(source.slice(start, at));
    if (tag === undefined || empty.has(tag.name)) {
      if (hidden === undefined && tag !== undefined) writer.tag(tag);
    } else if (hidden !== undefined) {
      if (tag.name === hidden.name) hidden.depth += tag.isEnd ? -1 : 1;
      if (hidden.depth === 0) hidden = undefined;
    } else if (!tag.isEnd && (unread.has(tag.name) || invisible.test(tag.attributes))) hidden = { name: tag.name, depth: 1 };
    else writer.tag(tag);
  }
  return writer.end();
}

/** Returns the position behind a tag or comment; that of the end when it has none. */
function endOfTag(source: string, start: number): number {
  if (source.startsWith('<!--', start)) {
    const end = source.indexOf('-->', start + 4);
    return end === -1 ? source.length : end + 3;
  }
  let quote = '';
  for (let at = start + 1; at < source.length; at += 1) {
    const char = source.charAt(at);
    if (quote !== '') quote = char === quote ? '' : quote;
    else if (char === '>') return at + 1;
    else if ((char === '"' || char === "'") && source.charAt(at - 1) === '=') quote = char;
  }
  return source.length;
}

function parseTag(text: string): Tag | undefined {
  const [start, slash, name] = /^<(\/?)([a-z][a-z0-9]{0,20})(?![a-z0-9])/i.exec(text) ?? [];
  return start === undefined || name === undefined
    ? undefined
    : { name: name.toLowerCase(), isEnd: slash === '/', attributes: text.slice(start.length, -1) };
}

const attributeOf = (attributes: string, name: 'alt' | 'href'): string => {
  const at = attributes.toLowerCase().indexOf(`${name}=`);
  const rest = at === -1 ? '' : attributes.slice(at + name.length + 1);
  const quote = /^["']/.exec(rest)?.[0];
  return quote === undefined ? (/^[^\s>]*/.exec(rest)?.[0] ?? '') : (rest.slice(1).split(quote, 1)[0] ?? '');
};

/** Writes lines of text, with spaces as a reader sees them. A line is a list of texts: one that is joined would be copied each time. */
class Writer {
  readonly #lines: string[] = [];
  #line: string[] = [];
  #quotes = 0;
  #pre = 0;
  #link: { readonly url: string; readonly from: number } | undefined;

  text(text: string): void {
    if (this.#pre > 0) {
      const [first = '', ...more] = text.split(/\r?\n/);
      this.#append(first);
      for (const line of more) {
        this.#break();
        this.#append(line);
      }
      return;
    }
    const joined = text.replaceAll(/[ \t\r\n\f]+/g, ' ');
    const hasSpace = this.#line.at(-1)?.endsWith(' ') ?? true;
    this.#append(hasSpace ? joined.replace(/^ /, '') : joined);
  }

  tag({ name, isEnd, attributes }: Tag): void {
    if (paragraphs.has(name)) this.#paragraph();
    else if (lines.has(name)) this.#endLine();
    switch (name) {
      case 'br':
        return this.#break();
      case 'li':
        return isEnd ? undefined : this.#append('- ');
      case 'td':
      case 'th':
        return isEnd ? this.text(' ') : undefined;
      case 'img':
        return this.text(attributeOf(attributes, 'alt'));
      case 'pre':
        this.#pre = Math.max(0, this.#pre + (isEnd ? -1 : 1));
        return;
      case 'blockquote':
        return this.#quote(isEnd);
      case 'a':
        return isEnd ? this.#endLink() : this.#startLink(attributeOf(attributes, 'href'));
      default:
    }
  }

  /** Returns the text, with its characters decoded. */
  end(): string {
    this.#endLine();
    const text = this.#lines.join('\n').replaceAll('<', '&lt;');
    // It contains no tags any more.
    const decoded: string = createDocument(`<!doctype html><body>${text}`, true).body.textContent ?? '';
    return decoded
      .replaceAll('\u00a0', ' ')
      .split('\n')
      .map((line) => line.trimEnd())
      .join('\n')
      .replaceAll(/\n{3,}/g, '\n\n')
      .trim();
  }

  #append(text: string): void {
    if (text !== '') this.#line.push(text);
  }

  #startLink(url: string): void {
    this.#link = /^(?:https?|mailto):/i.test(url) && url.length <= maxUrl ? { url, from: this.#line.length } : undefined;
  }

  #endLink(): void {
    if (this.#link === undefined) return;
    const { url, from } = this.#link;
    const shown = this.#line.slice(from).join('').trim();
    if (shown !== '' && shown !== url && `mailto:${shown}` !== url) this.#append(` (${url})`);
    this.#link = undefined;
  }

  #quote(isEnd: boolean): void {
    if (isEnd && this.#isAfterBlank()) this.#lines.pop();
    this.#quotes = Math.min(maxQuotes, Math.max(0, this.#quotes + (isEnd ? -1 : 1)));
    if (isEnd) this.#break();
  }

  #paragraph(): void {
    this.#endLine();
    if (!this.#isAfterBlank()) this.#break();
  }

  #isAfterBlank(): boolean {
    return (this.#lines.at(-1) ?? '').replaceAll('&gt; ', '') === '';
  }

  #endLine(): void {
    if (this.#line.some((part) => part.trim() !== '')) this.#break();
    else this.#line = [];
  }

  #break(): void {
    this.#lines.push(`${'&gt; '.repeat(this.#quotes)}${this.#line.join('')}`);
    this.#line = [];
  }
}
