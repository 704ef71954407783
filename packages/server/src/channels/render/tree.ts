import { getDefaults, Lexer, type MarkedToken, type Token, Tokenizer, type Tokens, type TokensList } from 'marked';

/** Deeper nesting is text, so that no answer exhausts the stack. */
const maxDepth = 24;
/** Characters that searches for the end of an emphasis may read in vain; the marks after that are text. */
const searchBudget = 1_000_000;

const bareAddress = /^(?:https?:\/\/|ftp:\/\/|www\.)/i;
/** Text up to what may be a mark, a line break or an address; as the rule of the package, without the search for addresses of mail. */
const runningText =
  /^(?:`+|~+|[^`~])(?:(?=[`~])|(?= *\n)|[\s\S]*?(?:(?=[\\<![`*~_]|\b_| *\n|https?:\/\/|ftp:\/\/|(?<![^\s*_~(])www\.|$)|[^ ](?= *\n)))/i;

/** The tokenizer of Markdown with bounds: nesting and searches of a hostile text would take seconds or the stack. */
class BoundedTokenizer extends Tokenizer {
  #depth = 0;
  #budget = searchBudget;

  override blockquote(src: string): Tokens.Blockquote | undefined {
    return this.#nested(() => super.blockquote(src));
  }

  override list(src: string): Tokens.List | undefined {
    return this.#nested(() => super.list(src));
  }

  override link(src: string): Tokens.Link | Tokens.Image | undefined {
    return this.#nested(() => super.link(src));
  }

  override emStrong(src: string, masked: string, previous?: string): Tokens.Em | Tokens.Strong | undefined {
    if (this.#budget <= 0) return undefined;
    const found = this.#nested(() => super.emStrong(src, masked, previous));
    if (found === undefined) this.#budget -= src.length;
    return found;
  }

  override del(src: string, masked: string, previous?: string): Tokens.Del | undefined {
    return this.#nested(() => super.del(src, masked, previous));
  }

  /** Only addresses of the web are found in running text: the search for addresses of mail is quadratic, and clients show them as links anyway. */
  override url(src: string): Tokens.Link | undefined {
    return bareAddress.test(src) ? super.url(src) : undefined;
  }

  override inlineText(src: string): Tokens.Text | undefined {
    const raw = runningText.exec(src)?.[0];
    return raw === undefined ? undefined : { type: 'text', raw, text: raw, escaped: false };
  }

  #nested<Found>(find: () => Found | undefined): Found | undefined {
    if (this.#depth >= maxDepth) return undefined;
    this.#depth += 1;
    try {
      return find();
    } finally {
      this.#depth -= 1;
    }
  }
}

/** Returns the blocks of a text that went through `cleanText`. Each line break of the text is one, as people expect it in chats. */
export function parse(markdown: string): TokensList {
  const lexer = new Lexer({ ...getDefaults(), gfm: true, breaks: true, tokenizer: new BoundedTokenizer() });
  return lexer.lex(markdown);
}

function isKnown(token: Token): token is MarkedToken {
  return 'type' in token;
}

/** Returns the tokens with their types. */
export const known = (tokens: readonly Token[] | undefined): readonly MarkedToken[] => (tokens ?? []).filter(isKnown);

/** More spaces than that in a row take the parser very long, and show nothing. */
const longestSpace = 200;

/** Returns the text without control characters but line breaks and tabs, and with whole characters only. */
export function cleanText(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/\r\n?|[\u2028\u2029]/g, '\n')
    .replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '')
    .replaceAll(/[ \t]{200,}/g, (spaces) => spaces.slice(0, longestSpace));
}

const named: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
  copy: '©',
  hellip: '…',
  mdash: '—',
  ndash: '–',
};

/** Decodes the character references that occur in prose; others stay as written. None becomes a control character. */
export function decodeText(text: string): string {
  if (!text.includes('&')) return text;
  return text.replaceAll(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,6}));/gi, (whole, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) return Object.hasOwn(named, name) ? (named[name] ?? whole) : whole;
    const point = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number.parseInt(decimal, 10);
    if (point < 0x20 || point === 0x2028 || point === 0x2029) return ' ';
    return point <= 0x10ffff ? cleanText(String.fromCodePoint(point)) : whole;
  });
}

/** Returns the address of a link in its canonical form; undefined when its scheme is not one of `schemes`. */
export function linkAddress(href: string, schemes: ReadonlySet<string>): string | undefined {
  if (!URL.canParse(href)) return undefined;
  const url = new URL(href);
  return schemes.has(url.protocol) ? url.href : undefined;
}

/** Whether a link shows just its address. */
export function isBareLink({ text, href }: Pick<Tokens.Link, 'text' | 'href'>): boolean {
  return text === href || `mailto:${text}` === href || `http://${text}` === href;
}
