import type { MarkedToken, Tokens } from 'marked';
import { decodeText, isBareLink, known } from './tree.ts';

/** Marks of a flavour whose blocks are lines of text. Texts that a function gets have the marks of the flavour already, unless it says so. */
export interface LineMarks {
  /** Makes plain text show as it is. */
  escape(text: string): string;
  /** A character that Markdown escaped with a backslash, as plain text. */
  escaped(character: string): string;
  strong(text: string): string;
  em(text: string): string;
  del(text: string): string;
  /** `text` is plain. */
  code(text: string): string;
  /** `text` is plain. */
  pre(text: string, language: string): string;
  /** Returns the address of a link as it is shown; undefined for one that may not be a link, which is shown behind its label. */
  address(href: string): string | undefined;
  /** An undefined label is the address itself. */
  link(href: string, label: string | undefined): string;
  heading(text: string, depth: number): string;
  quote(text: string, isNested: boolean): string;
  /** `cells` are plain, the header first. */
  table(cells: readonly (readonly string[])[]): string;
  readonly bullet: string;
}

interface Context {
  readonly marks: LineMarks;
  readonly isQuoted: boolean;
  /** A heading is strong as a whole. */
  readonly isStrong: boolean;
  /** Spaces before what is inside of an item of a list. */
  readonly indent: string;
}

const atTop = { isQuoted: false, isStrong: false, indent: '' };

/** Renders blocks as lines of text. */
export function renderLines(tokens: readonly MarkedToken[], marks: LineMarks): string {
  return blocks(tokens, { ...atTop, marks });
}

function blocks(tokens: readonly MarkedToken[], context: Context): string {
  return tokens
    .map((token) => block(token, context))
    .filter((text) => text !== '')
    .join('\n\n');
}

function block(token: MarkedToken, context: Context): string {
  const { marks } = context;
  switch (token.type) {
    case 'space':
    case 'def':
      return '';
    case 'heading':
      return marks.heading(inlines(token.tokens, { ...context, isStrong: true }), token.depth);
    case 'code':
      return marks.pre(token.text, languageOf(token));
    case 'blockquote':
      return marks.quote(blocks(known(token.tokens), { ...context, isQuoted: true, indent: '' }), context.isQuoted);
    case 'list':
      return list(token, context);
    case 'table':
      return marks.table(cellsOf(token));
    case 'hr':
      return marks.escape('———');
    case 'html':
      return marks.escape(token.text.trimEnd());
    case 'paragraph':
      return inlines(token.tokens, context);
    default:
      return inline(token, context);
  }
}

function list({ items, ordered, start, loose }: Tokens.List, context: Context): string {
  const first = start === '' ? 1 : start;
  const separator = loose ? '\n\n' : '\n';
  const inner = { ...context, indent: `${context.indent}  ` };
  return items
    .map((item, index) => {
      const marker = ordered ? `${first + index}. ` : context.marks.bullet;
      const [head, ...tokens] = known(item.tokens);
      const isTask = head?.type === 'checkbox';
      const parts = (isTask || head === undefined ? tokens : [head, ...tokens]).map((token) => itemBlock(token, inner)).filter((text) => text !== '');
      return `${context.indent}${marker}${isTask ? inline(head, context) : ''}${parts.join(separator).trimStart()}`.trimEnd();
    })
    .join(separator);
}

/** Code keeps its lines as they are, so that it can be copied; other text of an item is indented. */
function itemBlock(token: MarkedToken, context: Context): string {
  const text = block(token, context);
  return token.type === 'text' || token.type === 'paragraph' ? prefixed(text, context.indent) : text;
}

function inlines(tokens: Tokens.Paragraph['tokens'] | undefined, context: Context): string {
  return known(tokens)
    .map((token) => inline(token, context))
    .join('');
}

function inline(token: MarkedToken, context: Context): string {
  const { marks } = context;
  switch (token.type) {
    case 'text':
      return token.tokens === undefined ? marks.escape(decodeText(token.raw)) : inlines(token.tokens, context);
    case 'escape':
      return marks.escaped(token.text);
    case 'strong':
      return context.isStrong ? inlines(token.tokens, context) : marked(inlines(token.tokens, { ...context, isStrong: true }), marks.strong);
    case 'em':
      return marked(inlines(token.tokens, context), marks.em);
    case 'del':
      return marked(inlines(token.tokens, context), marks.del);
    case 'codespan':
      return marks.code(token.text);
    case 'br':
      return '\n';
    case 'link':
      return link(token, inlines(token.tokens, context), marks);
    case 'image':
      return link(token, marks.escape(decodeText(token.text)), marks);
    case 'checkbox':
      return token.checked ? '☑ ' : '☐ ';
    default:
      return marks.escape(token.raw);
  }
}

const cellsOf = ({ header, rows }: Tokens.Table): string[][] =>
  [header, ...rows].map((row) =>
    row.map(({ tokens }) =>
      inlines(tokens, { ...atTop, marks: plainMarks })
        .replaceAll(/\s+/g, ' ')
        .trim(),
    ),
  );

const marked = (text: string, mark: (text: string) => string): string => (text.trim() === '' ? text : mark(text));

function link(token: Tokens.Link | Tokens.Image, label: string, marks: LineMarks): string {
  const isBare = isBareLink(token) || label.trim() === '';
  const address = marks.address(token.href);
  if (address !== undefined) return marks.link(address, isBare ? undefined : label);
  if (isBare) return label.trim() === '' ? marks.escape(token.href) : label;
  return token.href === '' ? label : `${label} ${marks.escape(`(${token.href})`)}`;
}

/** Returns the name of the language of a block of code; '' for none. */
export const languageOf = ({ lang }: Tokens.Code): string => /^[\w+#.-]{1,24}/.exec(lang ?? '')?.[0] ?? '';

const same = (text: string): string => text;

export const plainMarks: LineMarks = {
  escape: same,
  escaped: same,
  strong: same,
  em: same,
  del: same,
  code: same,
  pre: same,
  link: (href, label) => (label === undefined ? href : `${label} <${href}>`),
  heading: same,
  quote: (text) => prefixed(text, '> '),
  address: same,
  table: (cells) => cells.map((row) => row.join(' | ')).join('\n'),
  bullet: '- ',
};

/** Returns the text with a prefix before each line. */
export const prefixed = (text: string, prefix: string): string => text.replaceAll(/^/gm, prefix);
