import xterm, { type IBufferCell, type IBufferLine, type IMarker, type Terminal } from '@xterm/headless';
import { Script, createContext } from 'node:vm';
import type { ScreenRow, ScreenRun, ScreenState } from './screen-thread.ts';
import type { TerminalSize } from './pseudo-terminal.ts';

const maxHistory = 1000;
/** An expression that needs longer never ends: other work of the machine does not take so long. */
const matchMs = 5_000;
/** Characters of one cell: combining marks pile up without limit otherwise. */
const maxCellChars = 16;
/** Lines of output that an expression is tested on. */
const maxTestedLines = 400;
/** Characters of a line: a cell holds any number of combining marks. */
const maxLineChars = 4096;

/** Emulates the screen of a terminal. `reply` sends what a terminal answers to queries of the program. */
export class Emulator {
  readonly #terminal: Terminal;
  readonly #test = new Script('RegExp(source, "mu").test(text)');
  #mark: { readonly marker: IMarker | undefined; readonly col: number; readonly buffer: string };
  #hasOutput = false;

  constructor(size: TerminalSize, reply: (text: string) => void) {
    this.#terminal = new xterm.Terminal({ ...size, scrollback: maxHistory, allowProposedApi: true, logLevel: 'off' });
    this.#terminal.onData(reply);
    this.#mark = { marker: this.#terminal.registerMarker(0), col: 0, buffer: 'normal' };
  }

  write(bytes: Uint8Array): Promise<void> {
    this.#hasOutput = true;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#terminal.write(bytes, resolve);
    return promise;
  }

  resize({ cols, rows }: TerminalSize): void {
    this.#terminal.resize(cols, rows);
  }

  /** Remembers where the cursor is: expressions are tested on what appears after it. Returns whether cursor keys are in application mode. */
  mark(): boolean {
    const { active } = this.#terminal.buffer;
    this.#mark.marker?.dispose();
    const marker = active.type === 'normal' ? this.#terminal.registerMarker(0) : undefined;
    this.#mark = { marker, col: active.cursorX, buffer: active.type };
    this.#hasOutput = false;
    return this.#terminal.modes.applicationCursorKeysMode;
  }

  /** Tests an expression on the output since the last mark; undefined when that takes too long. */
  matches(source: string): boolean | undefined {
    if (!this.#hasOutput) return false;
    try {
      return Boolean(this.#test.runInContext(createContext({ source, text: this.#sinceMark() }), { timeout: matchMs }));
    } catch {
      return undefined;
    }
  }

  /** Returns the screen with so many lines before it. Lines that the terminal wrapped are joined, so that nothing is torn apart. */
  state(history: number): ScreenState {
    const { active } = this.#terminal.buffer;
    const top = active.baseY;
    const cursorAt = top + active.cursorY;
    let from = Math.max(0, top - history);
    while (from > 0 && active.getLine(from)?.isWrapped === true) from -= 1;
    const lines: string[] = [];
    let cursor = { line: 0, col: active.cursorX };
    for (let at = from; at < active.length; at += 1) {
      const text = textOf(active.getLine(at));
      const isWrapped = at > from && active.getLine(at)?.isWrapped === true;
      const before = isWrapped ? (lines.pop() ?? '') : '';
      lines.push(before + text);
      if (at === cursorAt) cursor = { line: lines.length - 1, col: before.length + active.cursorX };
    }
    while (lines.length > cursor.line + 1 && lines.at(-1)?.trim() === '') lines.pop();
    return {
      lines: lines.map((line, index) => (index === cursor.line ? line : line.trimEnd())),
      cursor,
      isFullScreen: active.type === 'alternate',
      cols: this.#terminal.cols,
      rows: this.#terminal.rows,
    };
  }

  /** Returns the visible rows with their styles. */
  rows(): { readonly rows: readonly ScreenRow[]; readonly cursor: { readonly x: number; readonly y: number } | undefined } {
    const { active } = this.#terminal.buffer;
    const cell = active.getNullCell();
    const rows: ScreenRow[] = [];
    for (let y = 0; y < this.#terminal.rows; y += 1) {
      const line = active.getLine(active.baseY + y);
      rows.push({ isWrapped: line?.isWrapped === true, runs: line === undefined ? [] : runsOf(line, cell) });
    }
    return { rows, cursor: { x: Math.min(active.cursorX, this.#terminal.cols - 1), y: active.cursorY } };
  }

  #sinceMark(): string {
    const { active } = this.#terminal.buffer;
    const { marker, col, buffer } = this.#mark;
    const cursorAt = active.baseY + active.cursorY;
    const line = marker?.line ?? -1;
    // A program that draws the whole screen, or has cleared it, may write before the mark.
    const isSame = buffer === 'normal' && active.type === 'normal' && line >= 0 && line <= cursorAt;
    const start = isSame ? Math.max(line, active.length - maxTestedLines) : active.baseY;
    let text = '';
    for (let at = start; at < active.length; at += 1) {
      const current = active.getLine(at);
      const piece = textOf(current, isSame && at === line ? col : 0);
      text += at > start && current?.isWrapped !== true ? `\n${piece}` : piece;
    }
    return text;
  }
}

function textOf(line: IBufferLine | undefined, from = 0): string {
  if (line === undefined) return '';
  return clean(line.translateToString(true, from).slice(0, maxLineChars));
}

/** Removes control characters and those that change the direction of text. */
function clean(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '');
}

/** Joins cells of the same style. */
function runsOf(line: IBufferLine, cell: IBufferCell): readonly ScreenRun[] {
  const runs: { text: string; style: Omit<ScreenRun, 'text'>; key: string }[] = [];
  for (let x = 0; x < line.length; x += 1) {
    if (line.getCell(x, cell) === undefined || cell.getWidth() === 0) continue;
    const chars = clean(cell.getChars()).slice(0, maxCellChars) || ' ';
    const style = styleOf(cell);
    const key = JSON.stringify(style);
    const last = runs.at(-1);
    if (last?.key === key) last.text += chars;
    else runs.push({ text: chars, style, key });
  }
  const last = runs.at(-1);
  if (last?.key === '{}') last.text = last.text.trimEnd();
  return runs.flatMap(({ text, style }) => (text === '' ? [] : [{ text, ...style }]));
}

function styleOf(cell: IBufferCell): Omit<ScreenRun, 'text'> {
  const fg = cell.isFgRGB() ? toHex(cell.getFgColor()) : cell.isFgPalette() ? cell.getFgColor() : undefined;
  const bg = cell.isBgRGB() ? toHex(cell.getBgColor()) : cell.isBgPalette() ? cell.getBgColor() : undefined;
  return {
    ...(fg !== undefined && { fg }),
    ...(bg !== undefined && { bg }),
    ...(cell.isBold() !== 0 && { bold: true }),
    ...(cell.isDim() !== 0 && { dim: true }),
    ...(cell.isItalic() !== 0 && { italic: true }),
    ...(cell.isUnderline() !== 0 && { underline: true }),
    ...(cell.isInverse() !== 0 && { inverse: true }),
    ...(cell.isInvisible() !== 0 && { hidden: true }),
  };
}

const toHex = (color: number) => `#${color.toString(16).padStart(6, '0')}`;
