import { Refused, type Sink } from './sink.ts';
import { Table } from './table.ts';

/** Invisible to readers, and therefore a place to hide instructions for a model. */
const unseen = new Set(['SCRIPT', 'STYLE', 'NOSCRIPT', 'TEMPLATE', 'IFRAME', 'OBJECT', 'EMBED', 'SVG', 'CANVAS', 'HEAD', 'SELECT', 'DIALOG']);
const invisibleStyle =
  /display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0(?:\.0+)?\s*(?:;|$)|font-size\s*:\s*0|(?:left|top|text-indent)\s*:\s*-\d{3,}/i;
const blocks = new Set(
  'ADDRESS ARTICLE ASIDE BLOCKQUOTE BODY CAPTION DD DETAILS DIV DL DT FIGCAPTION FIGURE FOOTER FORM H1 H2 H3 H4 H5 H6 HEADER HR HTML LI MAIN NAV OL P PRE SECTION SUMMARY UL'.split(
    ' ',
  ),
);
/** What is used of the parser's nodes. */
interface MarkupNode {
  readonly nodeType: number;
  readonly nodeName: string;
  readonly nodeValue: string | null;
  readonly firstChild: MarkupNode | null;
  readonly nextSibling: MarkupNode | null;
}
interface MarkupElement extends MarkupNode {
  hasAttribute(name: string): boolean;
  getAttribute(name: string): string | null;
}

const maxBytes = 8_388_608;
const maxDepth = 400;

/** HTML: text by blocks, headings, lists and tables. `divides`: whether headings begin parts. */
export async function readMarkup(html: string, sink: Sink, divides = true): Promise<void> {
  if (html.length > maxBytes) throw new Refused('too_large', `has more than ${maxBytes} characters of HTML`);
  const { createDocument } = await import('@mixmark-io/domino');
  new Walk(sink, divides).read(createDocument(html, true).body);
}

class Walk {
  readonly #sink: Sink;
  readonly #divides: boolean;
  #text = '';
  #lists = 0;
  #isTable = false;

  constructor(sink: Sink, divides: boolean) {
    this.#sink = sink;
    this.#divides = divides;
  }

  read(body: MarkupNode): void {
    this.#children(body, 0);
    this.#flush();
  }

  #children(parent: MarkupNode, depth: number): void {
    if (depth > maxDepth) throw new Refused('too_large', `nests more than ${maxDepth} elements`);
    for (let node = parent.firstChild; node !== null; node = node.nextSibling) {
      if (node.nodeType === 3) this.#text += (node.nodeValue ?? '').replace(/\s+/g, ' ');
      else if (isElement(node) && isSeen(node)) this.#element(node, depth + 1);
    }
  }

  #element(node: MarkupElement, depth: number): void {
    const name = node.nodeName.toUpperCase();
    if (name === 'BR') this.#text += '\n';
    else if (name === 'TABLE' && !this.#isTable) this.#table(node, depth);
    else if (name === 'UL' || name === 'OL') {
      this.#flush();
      this.#lists += 1;
      this.#children(node, depth);
      this.#flush();
      this.#lists -= 1;
    } else if (blocks.has(name)) {
      this.#flush();
      this.#children(node, depth);
      const level = /^H([1-6])$/.exec(name)?.[1];
      if (level === undefined || this.#isTable) this.#flush();
      else this.#heading(Number(level));
    } else this.#children(node, depth);
  }

  #heading(level: number): void {
    const text = this.#text.trim();
    this.#text = '';
    if (text === '') return;
    if (this.#divides && level <= 2) this.#sink.section(text);
    this.#sink.paragraph(`${'#'.repeat(level)} ${text}`);
  }

  #flush(): void {
    if (this.#isTable) {
      this.#text += ' ';
      return;
    }
    const text = this.#text.trim();
    this.#text = '';
    if (text === '') return;
    if (this.#lists > 0) this.#sink.add(`${'  '.repeat(Math.min(8, this.#lists - 1))}- ${text}\n`);
    else this.#sink.paragraph(text);
  }

  #table(node: MarkupElement, depth: number): void {
    this.#flush();
    this.#isTable = true;
    const table = new Table(this.#sink);
    for (const row of rowsOf(node, 0)) {
      const cells: string[] = [];
      for (let cell = row.firstChild; cell !== null; cell = cell.nextSibling) {
        if (!isElement(cell) || !/^T[DH]$/i.test(cell.nodeName) || !isSeen(cell)) continue;
        this.#text = '';
        this.#children(cell, depth + 1);
        cells.push(this.#text);
      }
      table.row(cells);
    }
    this.#isTable = false;
    this.#text = '';
    table.end();
  }
}

function* rowsOf(node: MarkupNode, depth: number): Generator<MarkupNode> {
  for (let child = node.firstChild; child !== null; child = child.nextSibling) {
    if (/^TR$/i.test(child.nodeName)) yield child;
    else if (/^T(?:HEAD|BODY|FOOT)$/i.test(child.nodeName) && depth === 0) yield* rowsOf(child, 1);
  }
}

function isElement(node: MarkupNode): node is MarkupElement {
  return node.nodeType === 1;
}

function isSeen(node: MarkupElement): boolean {
  if (unseen.has(node.nodeName.toUpperCase()) || node.hasAttribute('hidden') || node.getAttribute('aria-hidden') === 'true') return false;
  return !invisibleStyle.test(node.getAttribute('style') ?? '');
}
