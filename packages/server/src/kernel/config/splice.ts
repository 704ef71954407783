import { type Document, isAlias, isMap, isScalar, isSeq, type Pair, parseDocument, type Scalar, stringify, type YAMLMap, type YAMLSeq } from 'yaml';

/** A replacement of the characters from `from` to `to`. */
export interface Splice {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

type Collection = YAMLMap | YAMLSeq;

/** The place at which a value is written: in a pair, in an item of a list, or as the whole document. */
type Place = { readonly flow: boolean } & (
  | { readonly kind: 'root' }
  | { readonly kind: 'pair'; readonly pair: Pair; readonly indent: number }
  | { readonly kind: 'item'; readonly dash: number; readonly indent: number }
);

/**
 * Returns a replacement that brings a YAML text nearer to a value, or undefined when it has that value. The first difference in the
 * order of the text is replaced, as small as it can be; below `depth` levels a different part is replaced as a whole.
 */
export function nextSplice(text: string, wanted: unknown, depth: number): Splice | undefined {
  const document = parseDocument(text, { keepSourceTokens: true, stringKeys: true, uniqueKeys: false, version: '1.2', logLevel: 'error' });
  return new Splicer(text, document).next(document.contents, wanted, { kind: 'root', flow: false }, depth);
}

class Splicer {
  readonly #text: string;
  readonly #document: Document;
  readonly #eol: string;
  /** Spaces per level: as the document indents its first nested section. */
  readonly #step: number;

  constructor(text: string, document: Document) {
    this.#text = text;
    this.#document = document;
    this.#eol = text.includes('\r\n') ? '\r\n' : '\n';
    this.#step = stepOf(document);
  }

  next(node: unknown, wanted: unknown, place: Place, depth: number): Splice | undefined {
    if (this.#equals(node, wanted)) return undefined;
    if (isCollection(node) && node.items.length > 0 && depth > 0) {
      if (isMap(node) && isRecord(wanted) && (Object.keys(wanted).length > 0 || place.kind === 'root')) return this.#nextInMap(node, wanted, depth);
      if (isSeq(node) && Array.isArray(wanted) && wanted.length > 0) return this.#nextInList(node, wanted, depth);
    }
    return this.#replace(node, wanted, place);
  }

  #nextInMap(map: YAMLMap, wanted: Readonly<Record<string, unknown>>, depth: number): Splice | undefined {
    const flow = map.flow === true;
    const indent = indentOf(map);
    const seen = new Set<string>();
    for (const [index, pair] of map.items.entries()) {
      const key = keyOf(pair);
      if (!Object.hasOwn(wanted, key)) return flow ? this.#removeFlow(map, index) : this.#removeBlock(map, index);
      seen.add(key);
      const splice = this.next(pair.value, wanted[key], { kind: 'pair', pair, indent, flow }, depth - 1);
      if (splice !== undefined) return splice;
    }
    const added = Object.keys(wanted).find((key) => !seen.has(key));
    if (added === undefined) return undefined;
    const end = this.#endOf(map.items.at(-1));
    if (flow)
      return insert(
        end,
        `, ${flowText({ [added]: wanted[added] })
          .slice(1, -1)
          .trim()}`,
      );
    return insert(this.#lineEnd(end), this.#eol + this.#indented(this.#block({ [added]: wanted[added] }), indent));
  }

  #nextInList(list: YAMLSeq, wanted: readonly unknown[], depth: number): Splice | undefined {
    const items: readonly unknown[] = list.items;
    let start = 0;
    while (start < items.length && start < wanted.length && this.#equals(items[start], wanted[start])) start++;
    let rest = 0;
    while (rest < items.length - start && rest < wanted.length - start && this.#equals(items.at(-1 - rest), wanted.at(-1 - rest))) rest++;
    const had = items.slice(start, items.length - rest);
    const has = wanted.slice(start, wanted.length - rest);
    const flow = list.flow === true;
    const remove = () => (flow ? this.#removeFlow(list, start) : this.#removeBlock(list, start));
    if (has.length === 0) return remove();
    if (had.length === 0) return this.#insertItem(list, start, has[0]);
    const [from, to] = [this.#idOf(had[0]), idOf(has[0])];
    if (from !== to && from !== undefined && to !== undefined) {
      if (had.some((item) => this.#idOf(item) === to)) return remove();
      if (has.some((item) => idOf(item) === from)) return this.#insertItem(list, start, has[0]);
    }
    return this.next(items[start], has[0], { kind: 'item', dash: this.#dashOf(list, start), indent: indentOf(list), flow }, depth - 1);
  }

  #insertItem(list: YAMLSeq, index: number, value: unknown): Splice {
    const following = list.items[index];
    if (list.flow === true) {
      if (following === undefined) return insert(this.#endOf(list.items.at(-1)), `, ${flowText(value)}`);
      return insert(this.#startOf(following), `${flowText(value)}, `);
    }
    const indent = indentOf(list);
    const lines = this.#indented(this.#block([value]), indent);
    if (following === undefined) return insert(this.#lineEnd(this.#endOf(list.items.at(-1))), this.#eol + lines);
    const dash = this.#dashOf(list, index);
    return insert(dash, lines.slice(indent) + this.#eol + ' '.repeat(indent));
  }

  #replace(node: unknown, wanted: unknown, place: Place): Splice {
    const text = this.#text;
    if (place.kind === 'root') {
      if (isMap(node) && node.range) return { from: node.range[0], to: node.range[1], text: this.#block(wanted) };
      return insert(text.length, (text === '' || text.endsWith('\n') ? '' : this.#eol) + this.#block(wanted) + this.#eol);
    }
    const range = rangeOf(node);
    const after = place.kind === 'pair' ? this.#colonOf(place.pair) : place.dash + 1;
    const isEmpty = range === undefined || range[0] === range[1];
    if (place.flow) {
      if (isEmpty) return insert(after, ` ${flowText(wanted)}`);
      return { from: range[0], to: range[1], text: flowText(wanted) };
    }
    // `: value` on the line of its key, or lines below it.
    const rendered =
      place.kind === 'pair'
        ? this.#indented(this.#block({ k: wanted }), place.indent).slice(place.indent + 2)
        : ` ${this.#indented(this.#block([wanted]), place.indent).slice(place.indent + 2)}`;
    const below = rendered.startsWith(this.#eol);
    if (isEmpty) return below ? insert(this.#lineEnd(after), rendered) : insert(after, rendered);
    const end = this.#endOf(node);
    const before = text.slice(after, range[0]);
    if (below) {
      // A comment behind the key or the value stays there.
      const tail = isCollection(node) && node.flow !== true ? '' : text.slice(end, this.#lineEnd(end));
      const kept = ((before.trim() === '' ? '' : before) + tail).trimEnd();
      return { from: after, to: isCollection(node) && node.flow !== true ? end : this.#lineEnd(end), text: kept + rendered };
    }
    const lineEnd = this.#lineEnd(after);
    if (lineEnd < range[0]) return { from: after, to: end, text: rendered + text.slice(after, lineEnd) };
    return { from: range[0], to: end, text: rendered.slice(1) };
  }

  #removeBlock(parent: Collection, index: number): Splice {
    const text = this.#text;
    const item: unknown = parent.items[index];
    const start = isMap(parent) ? this.#startOf(item) : this.#dashOf(parent, index);
    const end = this.#endOf(item, isMap(parent) ? undefined : start + 1);
    const lineStart = text.lastIndexOf('\n', start - 1) + 1;
    if (text.slice(lineStart, start).trim() === '') return { from: lineStart, to: this.#lineEnd(end, true), text: '' };
    // The first one of a section that begins behind a dash.
    const following: unknown = parent.items[index + 1];
    if (following === undefined) return { from: start, to: end, text: '' };
    const next = isMap(parent) ? this.#startOf(following) : this.#dashOf(parent, index + 1);
    return { from: start, to: text.slice(end, next).includes('#') ? end : next, text: '' };
  }

  #removeFlow(parent: Collection, index: number): Splice {
    const item: unknown = parent.items[index];
    if (index > 0) return { from: this.#endOf(parent.items[index - 1]), to: this.#endOf(item), text: '' };
    const following: unknown = parent.items[index + 1];
    const [from, to] = parent.range ?? [0, 0];
    if (following === undefined) return { from: from + 1, to: to - 1, text: '' };
    return { from: this.#startOf(item), to: this.#startOf(following), text: '' };
  }

  /** Position of the first character of a pair or value. */
  #startOf(item: unknown): number {
    return rangeOf(isPair(item) ? item.key : item)?.[0] ?? 0;
  }

  /** Position behind the last character of a pair or value, without the line end that closes a block of text. */
  #endOf(item: unknown, otherwise = 0): number {
    if (isPair(item)) {
      const range = rangeOf(item.value);
      return range === undefined || range[0] === range[1] ? this.#colonOf(item) : this.#endOf(item.value);
    }
    if (isCollection(item) && item.flow !== true) {
      const last: unknown = item.items.at(-1);
      return this.#endOf(last, isSeq(item) ? this.#dashOf(item, item.items.length - 1) + 1 : 0);
    }
    const range = rangeOf(item);
    if (range === undefined || range[0] === range[1]) return otherwise;
    const to = range[1];
    if (this.#text[to - 1] !== '\n') return to;
    return this.#text[to - 2] === '\r' ? to - 2 : to - 1;
  }

  /** Position behind the colon of a pair; behind the key where it has none. */
  #colonOf(pair: Pair): number {
    const colon = pair.srcToken?.sep?.find(({ type }) => type === 'map-value-ind');
    return colon === undefined ? (rangeOf(pair.key)?.[1] ?? 0) : colon.offset + 1;
  }

  #dashOf(list: YAMLSeq, index: number): number {
    const token = list.srcToken;
    const start = token?.type === 'block-seq' ? token.items[index]?.start : undefined;
    return start?.find(({ type }) => type === 'seq-item-ind')?.offset ?? 0;
  }

  #lineEnd(from: number, behind = false): number {
    const found = this.#text.indexOf('\n', from);
    if (found === -1) return this.#text.length;
    if (behind) return found + 1;
    return this.#text[found - 1] === '\r' ? found - 1 : found;
  }

  #block(value: unknown): string {
    const text = stringify(value, {
      version: '1.2',
      indent: this.#step,
      lineWidth: 0,
      flowCollectionPadding: false,
      aliasDuplicateObjects: false,
    });
    return text.replace(/\n$/, '').replaceAll('\n', this.#eol);
  }

  #indented(text: string, indent: number): string {
    return text.replaceAll(/^(?=[^\r\n])/gm, ' '.repeat(indent));
  }

  #equals(node: unknown, wanted: unknown): boolean {
    if (isAlias(node)) return this.#equals(node.resolve(this.#document), wanted);
    if (isMap(node))
      return (
        isRecord(wanted) &&
        node.items.length === Object.keys(wanted).length &&
        node.items.every((pair) => Object.hasOwn(wanted, keyOf(pair)) && this.#equals(pair.value, wanted[keyOf(pair)]))
      );
    if (isSeq(node))
      return Array.isArray(wanted) && node.items.length === wanted.length && node.items.every((item, at) => this.#equals(item, wanted[at]));
    if (isScalar(node)) return Object.is(node.value, wanted);
    // A document without content is an empty section.
    return wanted === null || (isRecord(wanted) && Object.keys(wanted).length === 0);
  }

  #idOf(node: unknown): unknown {
    const map = isAlias(node) ? node.resolve(this.#document) : node;
    return isMap(map) ? map.get('id') : undefined;
  }
}

function insert(at: number, text: string): Splice {
  return { from: at, to: at, text };
}

/** Returns a value for a place between braces or brackets, on one line. */
function flowText(value: unknown): string {
  const text = stringify([value], {
    version: '1.2',
    lineWidth: 0,
    collectionStyle: 'flow',
    flowCollectionPadding: false,
    aliasDuplicateObjects: false,
    blockQuote: false,
  });
  // A long one is broken into lines, whose indentation would have to fit.
  return text.trimEnd().includes('\n') ? JSON.stringify(value) : text.trimEnd().slice(1, -1);
}

function stepOf({ contents }: Document): number {
  if (isMap(contents) && contents.flow !== true)
    for (const { value } of contents.items as readonly Pair[])
      if (isMap(value) && value.flow !== true && value.items.length > 0) {
        const step = indentOf(value) - indentOf(contents);
        if (step > 0 && step <= 8) return step;
      }
  return 2;
}

function indentOf(collection: Collection): number {
  const token = collection.srcToken;
  return token !== undefined && 'indent' in token ? token.indent : 0;
}

function keyOf({ key }: Pair): string {
  return isScalar(key) ? String(key.value) : '';
}

function idOf(value: unknown): unknown {
  return isRecord(value) ? value['id'] : undefined;
}

function rangeOf(node: unknown): readonly [number, number, number] | undefined {
  return (isCollection(node) || isScalar(node) || isAlias(node) ? (node as Scalar).range : undefined) ?? undefined;
}

function isCollection(node: unknown): node is Collection {
  return isMap(node) || isSeq(node);
}

function isPair(item: unknown): item is Pair {
  return typeof item === 'object' && item !== null && 'key' in item && !isCollection(item);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
