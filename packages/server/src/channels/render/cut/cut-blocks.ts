import type { MarkedToken, Tokens } from 'marked';
import { cutInlines } from './cut-inlines.ts';
import { cutPoint, largest } from './fitting.ts';
import { asParagraph, escapeMarkdown, fenced, joinBlocks, listed, quoted, sourceOfBlocks } from './markdown-source.ts';
import { known } from '../tree.ts';

/** A text of Markdown in two. Without a head, the rest is a simpler form of the same text that can be cut further. */
export interface Cut {
  readonly head: string;
  readonly rest: string;
}

/** What is left of a part. */
export interface Space {
  /** Whether Markdown fits behind what the part has already. */
  fits(source: string): boolean;
  /** Whether it would fit into an empty part. */
  fitsAlone(source: string): boolean;
  /** The part has nothing yet: something has to be taken. */
  readonly isFresh: boolean;
}

/** Cuts off as many blocks as fit, and cuts the next one when it is too long for any part. Returns undefined when nothing can be taken. */
export function cutBlocks(tokens: readonly MarkedToken[], space: Space): Cut | undefined {
  const blocks = tokens.filter(({ type }) => type !== 'def');
  const sourceOf = (from: number, to?: number): string => sourceOfBlocks(blocks.slice(from, to));
  const count = largest(blocks.length, (most) => space.fits(sourceOf(0, most)));
  const block = blocks[count];
  const before = sourceOf(0, count);
  if (block === undefined) return { head: before, rest: '' };
  const isFresh = space.isFresh && before.trim() === '';
  const at = withoutHeadings(blocks, count);
  const cutBefore: Cut | undefined = before.trim() === '' ? undefined : { head: sourceOf(0, at), rest: sourceOf(at) };
  if (!isFresh && space.fitsAlone(sourceOfBlocks([block]))) return cutBefore;
  const cut = cutBlock(block, { fits: (source) => space.fits(before + source), fitsAlone: (source) => space.fitsAlone(source), isFresh });
  if (cut === undefined || (cut.head === '' && !isFresh)) return cutBefore;
  return { head: cut.head === '' ? '' : before + cut.head, rest: joinBlocks(cut.rest, sourceOf(count + 1)) };
}

/** Returns where to cut so that no part ends with the heading of the next one; a heading alone stays. */
function withoutHeadings(blocks: readonly MarkedToken[], count: number): number {
  const isText = ({ type }: MarkedToken): boolean => type !== 'heading' && type !== 'space';
  const last = blocks.slice(0, count).findLastIndex(isText);
  return last === -1 ? count : last + 1;
}

function cutBlock(token: MarkedToken, space: Space): Cut | undefined {
  switch (token.type) {
    case 'code':
      return cutCode(token, space);
    case 'blockquote':
      return cutQuote(token, space);
    case 'list':
      return cutList(token, space);
    case 'table':
      return cutTable(token, space);
    case 'heading':
      return cutHeading(token, space);
    case 'paragraph':
      return cutInlines(token.tokens, space);
    case 'text':
      return cutInlines([token], space);
    default:
      return simpler(token.raw, space);
  }
}

/** Returns a text as Markdown that is shown as it is, when the text could not be cut otherwise. */
const simpler = (text: string, { isFresh }: Space): Cut | undefined => (isFresh ? { head: '', rest: escapeMarkdown(text) } : undefined);

/** Each part is a whole block of code with the same language. */
function cutCode({ text, lang = '' }: Tokens.Code, space: Space): Cut | undefined {
  const lines = text.split('\n');
  const count = largest(lines.length - 1, (most) => space.fits(fenced(lines.slice(0, most), lang)));
  if (count > 0) return { head: fenced(lines.slice(0, count), lang), rest: fenced(lines.slice(count), lang) };
  if (!space.isFresh) return undefined;
  const [first = '', ...others] = lines;
  const at = cutPoint(first, (head) => space.fits(fenced([head], lang)));
  if (at === 0) return simpler(text, space);
  return { head: fenced([first.slice(0, at)], lang), rest: fenced([first.slice(at), ...others], lang) };
}

function cutQuote(quote: Tokens.Blockquote, space: Space): Cut | undefined {
  const cut = cutBlocks(known(quote.tokens), within(space, quoted));
  if (cut !== undefined) return { head: cut.head === '' ? '' : quoted(cut.head), rest: quoted(cut.rest) };
  return space.isFresh ? { head: '', rest: contentOf(quote) } : undefined;
}

/** Returns the space inside of a block that `wrap` makes of its content. */
function within(space: Space, wrap: (source: string) => string, before = ''): Space {
  return {
    fits: (source) => space.fits(before + wrap(source)),
    fitsAlone: (source) => space.fitsAlone(wrap(source)),
    isFresh: space.isFresh && before === '',
  };
}

/** The next part continues the numbers; the rest of an item that was cut has no marker. */
function cutList(list: Tokens.List, space: Space): Cut | undefined {
  const separator = list.loose ? '\n\n' : '\n';
  const itemsOf = (from: number, to?: number): string =>
    list.items
      .slice(from, to)
      .map((item, index) => listed(contentOf(item), markerOf(list, from + index)))
      .join(separator);
  const count = largest(list.items.length, (most) => space.fits(itemsOf(0, most)));
  const item = list.items[count];
  if (item === undefined) return { head: itemsOf(0), rest: '' };
  const cutBefore: Cut | undefined = count === 0 ? undefined : { head: itemsOf(0, count), rest: itemsOf(count) };
  const marker = markerOf(list, count);
  if (!(space.isFresh && count === 0) && space.fitsAlone(listed(contentOf(item), marker))) return cutBefore;
  const before = count === 0 ? '' : itemsOf(0, count) + separator;
  const asItem = (source: string): string => listed(source, marker);
  const inner = within(space, asItem, before);
  const after = itemsOf(count + 1);
  const cut = cutBlocks(known(item.tokens), inner);
  if (cut === undefined) return cutBefore ?? (space.isFresh ? { head: '', rest: joinBlocks(contentOf(item), after) } : undefined);
  if (cut.head !== '') return { head: before + asItem(cut.head), rest: joinBlocks(cut.rest, after) };
  return inner.isFresh ? { head: '', rest: joinBlocks(asItem(cut.rest), after) } : cutBefore;
}

const contentOf = ({ tokens }: Tokens.ListItem | Tokens.Blockquote): string => sourceOfBlocks(known(tokens));

function markerOf({ ordered, start, raw }: Tokens.List, index: number): string {
  const [, mark = '-'] = /^\s*(?:\d+)?([-+*.)])/.exec(raw) ?? [];
  return ordered ? `${(start === '' ? 1 : start) + index}${mark} ` : `${mark} `;
}

/** Each part has the header. */
function cutTable({ header, align, rows }: Tokens.Table, space: Space): Cut | undefined {
  const head = [
    rowOf(header),
    `|${align.map((side) => (side === 'center' ? ':-:' : side === 'right' ? '--:' : side === 'left' ? ':--' : '---')).join('|')}|`,
  ];
  const tableOf = (from: number, to?: number): string => [...head, ...rows.slice(from, to).map(rowOf)].join('\n');
  const count = largest(rows.length - 1, (most) => space.fits(tableOf(0, most)));
  if (count > 0) return { head: tableOf(0, count), rest: tableOf(count) };
  if (!space.isFresh) return undefined;
  // A row that is too long is text, like all of them when the header alone is.
  const asText = space.fits(tableOf(0, 0)) ? 1 : rows.length;
  const paragraphs = [header, ...rows.slice(0, asText)].map(textOfRow).join('\n\n');
  return { head: '', rest: asText >= rows.length ? paragraphs : joinBlocks(paragraphs, tableOf(asText)) };
}

const rowOf = (cells: readonly Tokens.TableCell[]): string => `| ${cells.map(({ text }) => text.replaceAll('|', '\\|')).join(' | ')} |`;
const textOfRow = (cells: readonly Tokens.TableCell[]): string => asParagraph(cells.map(({ text }) => text).join(' — '));

function cutHeading({ depth, tokens, text }: Tokens.Heading, space: Space): Cut | undefined {
  const asHeading = (source: string): string => `${'#'.repeat(depth)} ${source.replaceAll(/\s*\n\s*/g, ' ')}`;
  const cut = cutInlines(tokens, within(space, asHeading));
  if (cut !== undefined) return { head: cut.head === '' ? '' : asHeading(cut.head), rest: asHeading(cut.rest) };
  return space.isFresh ? { head: '', rest: asParagraph(text) } : undefined;
}
