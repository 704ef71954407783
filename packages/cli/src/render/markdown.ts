import stringWidth from 'fast-string-width';
import { wrapAnsi } from 'fast-wrap-ansi';
import { lexer, type Token, type Tokens } from 'marked';
import { type Paint, plainPaint } from './paint.ts';
import { printableText } from './plain.ts';

export interface MarkdownOptions {
  /** Columns of the terminal. */
  readonly width: number;
  readonly paint: Paint;
}

/** Renders Markdown as lines for a terminal: wrapped between words, without control characters of the text itself. */
export function renderMarkdown(text: string, options: MarkdownOptions): string[] {
  return renderBlocks(lexer(printableText(text)), options);
}

/**
 * Renders Markdown while it arrives. A block is returned once it cannot change any more; the rest is available as a
 * preview.
 */
export class MarkdownStream {
  readonly #options: () => MarkdownOptions;
  #pending = '';
  #hasPrinted = false;

  constructor(options: () => MarkdownOptions) {
    this.#options = options;
  }

  add(text: string): void {
    this.#pending += text;
  }

  /** Returns the lines of the blocks that are complete by now. */
  takeFinished(): string[] {
    const tokens = lexer(this.#pending);
    let finished = tokens.length - 1;
    while (finished > 0 && tokens[finished]?.type === 'space') finished -= 1;
    // A blank line ends a paragraph, but not a list, and not code without its fence.
    const last = tokens[finished];
    if (finished < tokens.length - 1 && last?.type === 'paragraph') finished += 1;
    const raw = tokens.slice(0, finished).reduce((length, token) => length + token.raw.length, 0);
    if (raw === 0) return [];
    const text = this.#pending.slice(0, raw);
    this.#pending = this.#pending.slice(raw);
    return this.#render(text);
  }

  /** Returns the lines of what is left; the stream is empty then. */
  end(): string[] {
    const text = this.#pending;
    this.#pending = '';
    return this.#render(text);
  }

  /** Returns what is not complete yet, as it looks now. */
  preview(): string[] {
    return renderMarkdown(this.#pending, this.#options());
  }

  #render(text: string): string[] {
    const lines = renderMarkdown(text, this.#options());
    if (lines.length === 0) return [];
    const separated = this.#hasPrinted ? ['', ...lines] : lines;
    this.#hasPrinted = true;
    return separated;
  }
}

function renderBlocks(tokens: readonly Token[], options: MarkdownOptions, isTight = false): string[] {
  const lines: string[] = [];
  for (const token of tokens) {
    const block = renderBlock(token, options);
    if (block.length === 0) continue;
    if (lines.length > 0 && !isTight) lines.push('');
    lines.push(...block);
  }
  return lines;
}

function renderBlock(token: Token, options: MarkdownOptions): string[] {
  const { paint, width } = options;
  switch (token.type) {
    case 'space':
    case 'def':
      return [];
    case 'heading':
      return headingLines(token as Tokens.Heading, options);
    case 'code':
      return (token as Tokens.Code).text.split('\n').map((line) => `  ${paint('cyan', line)}`.trimEnd());
    case 'hr':
      return [paint('dim', '─'.repeat(Math.min(width, 40)))];
    case 'blockquote':
      return renderBlocks((token as Tokens.Blockquote).tokens, { ...options, width: width - 2 }).map((line) => `${paint('dim', '│')} ${line}`);
    case 'list':
      return listLines(token as Tokens.List, options);
    case 'table':
      return tableLines(token as Tokens.Table, options);
    case 'html':
      return wrap(token.raw.trimEnd(), width);
    default:
      return wrap(inline('tokens' in token && token.tokens !== undefined ? token.tokens : [token], paint), width);
  }
}

function headingLines({ depth, tokens }: Tokens.Heading, { paint, width }: MarkdownOptions): string[] {
  const text = inline(tokens, paint);
  // Without styles the level is visible by its marks.
  const shown = paint === plainPaint ? `${'#'.repeat(depth)} ${text}` : paint('bold', depth === 1 ? paint('underline', text) : text);
  return wrap(shown, width);
}

function listLines({ items, ordered, start, loose }: Tokens.List, options: MarkdownOptions): string[] {
  const first = typeof start === 'number' ? start : 1;
  return items.flatMap((item, index) => {
    const box = item.task ? `[${item.checked === true ? 'x' : ' '}] ` : '';
    const mark = `${ordered ? `${first + index}.` : '•'} ${box}`;
    // The box is rendered here; newer parsers also have a token for it.
    const tokens = item.tokens.filter(({ type }) => type !== 'checkbox');
    const body = renderBlocks(tokens, { ...options, width: Math.max(10, options.width - mark.length) }, !item.loose);
    const lines = body.length === 0 ? [''] : body;
    const indented = lines.map((line, at) => (at === 0 ? mark + line : line === '' ? '' : ' '.repeat(mark.length) + line));
    return loose && index < items.length - 1 ? [...indented, ''] : indented;
  });
}

/** Renders a table; when it is too wide, its widest columns are narrowed and their cells wrapped. */
function tableLines({ header, rows, align }: Tokens.Table, { width, paint }: MarkdownOptions): string[] {
  const texts = [header, ...rows].map((row) => row.map((cell) => inline(cell.tokens, paint)));
  const widths = header.map((_, column) => Math.max(1, ...texts.map((row) => stringWidth(row[column] ?? ''))));
  const gap = 3;
  const available = Math.max(header.length * 3, width - gap * (header.length - 1));
  while (widths.reduce((sum, one) => sum + one, 0) > available) {
    const widest = widths.indexOf(Math.max(...widths));
    widths[widest] = (widths[widest] ?? 1) - 1;
  }
  const lines = texts.flatMap((row, at) => {
    const cells = row.map((text, column) => wrap(text, widths[column] ?? 1));
    const height = Math.max(1, ...cells.map((cell) => cell.length));
    const shown = Array.from({ length: height }, (_, line) =>
      cells
        .map((cell, column) => pad(cell[line] ?? '', widths[column] ?? 1, align[column] ?? null))
        .map((text) => (at === 0 ? paint('bold', text) : text))
        .join(paint('dim', ' │ '))
        .trimEnd(),
    );
    return at === 0 ? [...shown, paint('dim', widths.map((one) => '─'.repeat(one)).join('─┼─'))] : shown;
  });
  return lines;
}

function pad(text: string, width: number, align: 'left' | 'right' | 'center' | null): string {
  const free = Math.max(0, width - stringWidth(text));
  const before = align === 'right' ? free : align === 'center' ? Math.floor(free / 2) : 0;
  return ' '.repeat(before) + text + ' '.repeat(free - before);
}

function inline(tokens: readonly Token[], paint: Paint): string {
  return tokens.map((token) => inlineText(token, paint)).join('');
}

function inlineText(token: Token, paint: Paint): string {
  const inner = () => inline('tokens' in token && token.tokens !== undefined ? token.tokens : [], paint);
  switch (token.type) {
    case 'strong':
      return paint('bold', inner());
    case 'em':
      return paint('italic', inner());
    case 'del':
      return paint('strike', inner());
    case 'codespan': {
      const text = decoded((token as Tokens.Codespan).text);
      return paint === plainPaint ? `\`${text}\`` : paint('cyan', text);
    }
    case 'br':
      return '\n';
    case 'link': {
      const { href, text } = token as Tokens.Link;
      const isBare = text === href || `mailto:${text}` === href;
      return isBare ? paint('underline', href) : `${paint('underline', inner())} (${href})`;
    }
    case 'image': {
      const { href, text } = token as Tokens.Image;
      return `[image${text === '' ? '' : `: ${text}`}] (${href})`;
    }
    case 'text':
    case 'escape':
      return 'tokens' in token && token.tokens !== undefined ? inner() : decoded((token as Tokens.Text).text);
    default:
      return token.raw;
  }
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", nbsp: ' ' };

/** Decodes the references that models write; others stay as they are. */
function decoded(text: string): string {
  return text.replaceAll(/&(amp|lt|gt|quot|#39|nbsp);/g, (found, name: string) => entities[name] ?? found);
}

function wrap(text: string, width: number): string[] {
  return wrapAnsi(text, Math.max(1, width), { hard: true, trim: true }).split('\n');
}
