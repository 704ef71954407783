import stringWidth from 'fast-string-width';
import type { Io } from '../io.ts';

/** Lines at the bottom of the terminal that change, such as a prompt. */
export interface LiveLines {
  readonly lines: readonly string[];
  /** Position of the cursor: line, and columns before it. */
  readonly row: number;
  readonly column: number;
}

const nothing: LiveLines = { lines: [], row: 0, column: 0 };

/**
 * Prints lines that stay, above lines that change. Only changed lines are written again, so that it works over a slow
 * connection; nothing else than the own lines is ever cleared.
 */
export class Screen {
  readonly #stdout: Io['stdout'];
  #shown = nothing;
  /** Columns at the time of the last drawing. */
  #width: number;

  constructor(stdout: Io['stdout']) {
    this.#stdout = stdout;
    this.#width = this.columns;
  }

  get columns(): number {
    const { columns } = this.#stdout;
    return columns === undefined || columns < 20 ? 80 : columns;
  }

  get rows(): number {
    const rows = 'rows' in this.#stdout && typeof this.#stdout.rows === 'number' ? this.#stdout.rows : 24;
    return rows < 5 ? 24 : rows;
  }

  /** Draws the changing lines; each must be narrower than the terminal. */
  draw(next: LiveLines): void {
    if (this.#width !== this.columns) return this.print([], next);
    const { lines, row, column } = this.#shown;
    let first = 0;
    while (first < lines.length && first < next.lines.length && lines[first] === next.lines[first]) first += 1;
    if (first === lines.length && first === next.lines.length && row === next.row && column === next.column) return;
    let out = '';
    let at = row;
    if (first < lines.length || first < next.lines.length) {
      out += vertical(Math.min(first, Math.max(0, lines.length - 1)) - at);
      // Beyond the last line: a line feed makes a new one.
      out += first > 0 && first >= lines.length ? '\r\n' : '\r';
      out += `\x1b[J${next.lines.slice(first).join('\r\n')}`;
      at = first < next.lines.length ? next.lines.length - 1 : first;
    }
    this.#stdout.write(`${out}${vertical(next.row - at)}\r${next.column > 0 ? `\x1b[${next.column}C` : ''}`);
    this.#shown = next;
  }

  /** Prints lines that stay, and the changing ones below. */
  print(lines: readonly string[], next: LiveLines = this.#shown): void {
    const text = lines.map((line) => `${line}\r\n`).join('');
    this.#stdout.write(`${this.#toStart()}\x1b[J${text}`);
    this.#shown = nothing;
    this.#width = this.columns;
    this.draw(next);
  }

  clear(next: LiveLines): void {
    this.#stdout.write('\x1b[2J\x1b[H');
    this.#shown = nothing;
    this.draw(next);
  }

  /** Moves the cursor to the start of the changing lines, which the terminal has wrapped again if it became narrower. */
  #toStart(): string {
    const { lines, row, column } = this.#shown;
    const width = this.columns;
    const wrapped = lines.slice(0, row).reduce((sum, line) => sum + Math.max(1, Math.ceil(stringWidth(line) / width)), 0);
    const above = wrapped + Math.floor(column / width);
    return `\r${vertical(-above)}`;
  }
}

function vertical(by: number): string {
  return by === 0 ? '' : by < 0 ? `\x1b[${-by}A` : `\x1b[${by}B`;
}
