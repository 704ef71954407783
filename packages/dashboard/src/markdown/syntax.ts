import { Marked, type MarkedToken, type Token, type TokenizerAndRendererExtension, type TokensList } from 'marked';

/** A formula in TeX. */
export interface MathToken {
  readonly type: 'math';
  readonly raw: string;
  readonly tex: string;
  /** Whether it is on its own lines, instead of inside a sentence. */
  readonly display: boolean;
}

/** The place in a text that a footnote belongs to. */
export interface FootnoteRefToken {
  readonly type: 'footnoteRef';
  readonly raw: string;
  readonly label: string;
}

/** The text of a footnote. */
export interface FootnoteToken {
  readonly type: 'footnote';
  readonly raw: string;
  readonly label: string;
  readonly tokens: Token[];
}

/** What the parser returns: the tokens of Markdown, of formulas and of footnotes. */
export type AnyToken = MarkedToken | MathToken | FootnoteRefToken | FootnoteToken;

/** Longer formulas are shown as text: their conversion would take too long. */
const maxTex = 2_000;
/** Searching a long paragraph to its end for each of its parts would make parsing quadratic. */
const searched = 1_000;

/** Returns where a formula ends that begins before `from`. It never contains an empty line: more text after one cannot change the blocks before it. */
function closing(source: string, from: number, end: string): number {
  const near = source.slice(from, from + maxTex);
  const at = end === '$$' ? near.indexOf(end) : closingBackslash(near, end);
  return at < 0 || /\n[ \t]*\n/.test(near.slice(0, at)) ? -1 : from + at;
}

/** A delimiter that opens another formula ends the search. In `\\[2pt]` there is none, because the backslashes are a pair. */
function closingBackslash(source: string, end: string): number {
  for (const { 0: found, index } of source.matchAll(/\\[^]/g)) {
    if (found === end) return index;
    if (found === '\\(' || found === '\\[') return -1;
  }
  return -1;
}

const math = (raw: string, tex: string, display: boolean): MathToken | undefined =>
  tex.trim() === '' ? undefined : { type: 'math', raw, tex: tex.trim(), display };

/** Returns the beginning of a later line where `pattern` matches, within the paragraph. */
function lineStart(source: string, pattern: RegExp): number | undefined {
  const near = source.slice(0, searched);
  const end = near.search(/\n[ \t]*\n/);
  const at = near.slice(0, end < 0 ? undefined : end).search(pattern);
  return at < 0 ? undefined : at + 1;
}

function inLines(source: string): MathToken | undefined {
  const [before, open] = /^ {0,3}(\$\$|\\\[)/.exec(source) ?? [];
  if (before === undefined) return undefined;
  const close = open === '$$' ? '$$' : '\\]';
  const at = closing(source, before.length, close);
  if (at < 0) return undefined;
  const [rest] = /^[ \t]*(?:\n|$)/.exec(source.slice(at + close.length, at + searched)) ?? [];
  if (rest === undefined) return undefined;
  return math(source.slice(0, at + close.length) + rest, source.slice(before.length, at), true);
}

/** `$$ … $$` and `\[ … \]` that begin a line. */
const displayMath: TokenizerAndRendererExtension = {
  name: 'displayMath',
  level: 'block',
  start(source) {
    const at = lineStart(source, /\n {0,3}(?:\$\$|\\\[)/);
    return at === undefined || inLines(source.slice(at)) === undefined ? undefined : at;
  },
  tokenizer: inLines,
};

/** Dollars are mostly prices: `$5 and $6`, `US$5`, `$PATH` and `5$` stay text. */
function inDollars(source: string): MathToken | undefined {
  if (source.startsWith('$$')) {
    const at = closing(source, 2, '$$');
    return at < 0 ? undefined : math(source.slice(0, at + 2), source.slice(2, at), true);
  }
  if (/^\$\s/.test(source)) return undefined;
  let at = 1;
  while (at < source.length && at <= maxTex && source[at] !== '$') {
    if (source[at] === '\n' && /^\n[ \t]*\n/.test(source.slice(at, at + 40))) return undefined;
    at += source[at] === '\\' ? 2 : 1;
  }
  if (source[at] !== '$' || /\s/.test(source[at - 1] ?? '') || /[\p{L}\p{N}$]/u.test(source[at + 1] ?? '')) return undefined;
  return math(source.slice(0, at + 1), source.slice(1, at), false);
}

function inBackslashes(source: string): MathToken | undefined {
  const display = source.startsWith('\\[');
  const at = closing(source, 2, display ? '\\]' : '\\)');
  // A bracket in a link text that is escaped.
  if (at < 0 || (display && /^[([]/.test(source.slice(at + 2)))) return undefined;
  return math(source.slice(0, at + 2), source.slice(2, at), display);
}

const inlineMath: TokenizerAndRendererExtension = {
  name: 'inlineMath',
  level: 'inline',
  start(source) {
    const near = source.slice(0, searched);
    const at = near.search(/(?<![\p{L}\p{N}\\$])\$/u);
    if (at >= 0) return at;
    // The text is cut there and searched on.
    return source.length > searched ? near.lastIndexOf(' ') : undefined;
  },
  tokenizer(source) {
    if (source.startsWith('$')) return inDollars(source);
    return /^\\[([]/.test(source) ? inBackslashes(source) : undefined;
  },
};

const footnoteRef: TokenizerAndRendererExtension = {
  name: 'footnoteRef',
  level: 'inline',
  tokenizer(source) {
    const [raw, label] = /^\[\^([^\]\s]{1,64})\](?!:)/.exec(source) ?? [];
    return raw === undefined || label === undefined ? undefined : ({ type: 'footnoteRef', raw, label } satisfies FootnoteRefToken);
  },
};

const footnote: TokenizerAndRendererExtension = {
  name: 'footnote',
  level: 'block',
  start: (source) => lineStart(source, /\n {0,3}\[\^[^\]\s]{1,64}\]:/),
  tokenizer(source) {
    // Up to an empty line, or the next footnote.
    const [raw, label, text] =
      /^ {0,3}\[\^([^\]\s]{1,64})\]:[ \t]*([^\n]*(?:\n(?![ \t]*(?:\n|$)| {0,3}\[\^[^\]\s]{1,64}\]:)[^\n]*)*)(?:\n|$)/.exec(source) ?? [];
    if (raw === undefined || label === undefined || text === undefined) return undefined;
    const tokens: Token[] = [];
    this.lexer.inline(text.replaceAll(/\n[ \t]+/g, '\n'), tokens);
    return { type: 'footnote', raw, label, tokens } satisfies FootnoteToken;
  },
};

const markdown = new Marked({ gfm: true, breaks: true, extensions: [displayMath, inlineMath, footnoteRef, footnote] });

/** Parses a text with Markdown, formulas and footnotes. */
export function parseMarkdown(text: string): TokensList {
  return markdown.lexer(text);
}
