import type { Sink } from './sink.ts';

/** Columns beyond are dropped: a cell can claim to stand in column 16,384. */
export const maxColumns = 256;

/** Writes rows as a Markdown table, one at a time, so that a long table needs no memory. */
export class Table {
  readonly #sink: Sink;
  #rows = 0;

  constructor(sink: Sink) {
    this.#sink = sink;
  }

  row(cells: readonly string[]): void {
    const shown = cells.slice(0, maxColumns).map(plainCell);
    while (shown.length > 0 && shown.at(-1) === '') shown.pop();
    if (shown.length === 0) return;
    this.#sink.add(`| ${shown.join(' | ')} |\n`);
    if (this.#rows === 0) this.#sink.add(`|${' --- |'.repeat(shown.length)}\n`);
    this.#rows += 1;
  }

  end(): void {
    if (this.#rows > 0) this.#sink.add('\n');
  }
}

function plainCell(text: string): string {
  return text
    .trim()
    .replace(/\s*\n\s*/g, ' ')
    .replaceAll('|', '\\|');
}
