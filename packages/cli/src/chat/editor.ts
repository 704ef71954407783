import stringWidth from 'fast-string-width';
import { printableText } from '../render/plain.ts';
import type { Key } from './keys.ts';

/** What a key asks of the chat, beyond changing the text. */
export type EditorRequest = { readonly type: 'submit'; readonly text: string } | { readonly type: 'leave' } | { readonly type: 'clear-screen' };

export interface Completion {
  /** Replacements for the text before the cursor. */
  readonly candidates: readonly string[];
}

export interface EditorDeps {
  /** Earlier messages, oldest first. */
  readonly history: readonly string[];
  readonly complete: (before: string) => Promise<Completion> | Completion;
  /** Called when a completion changed the text or the shown candidates. */
  readonly changed: () => void;
}

/** Lines to draw, and where the cursor is in them. */
export interface EditorView {
  readonly lines: readonly string[];
  readonly row: number;
  readonly column: number;
}

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** Edits one message of any number of lines. */
export class Editor {
  readonly #deps: EditorDeps;
  #text = '';
  #at = 0;
  /** Position in the history; its length while a new message is written. */
  #historyAt: number;
  #draft = '';
  #history: string[];
  #candidates: readonly string[] = [];

  constructor(deps: EditorDeps) {
    this.#deps = deps;
    this.#history = [...deps.history];
    this.#historyAt = this.#history.length;
  }

  get text(): string {
    return this.#text;
  }

  /** Candidates of the last completion, until the next key. */
  get candidates(): readonly string[] {
    return this.#candidates;
  }

  set(text: string): void {
    this.#text = text;
    this.#at = text.length;
  }

  /** Adds a message to the history. */
  remember(text: string): void {
    if (this.#history.at(-1) !== text) this.#history.push(text);
    this.#historyAt = this.#history.length;
  }

  handle(key: Key): EditorRequest | undefined {
    this.#candidates = [];
    switch (key.name) {
      case 'text':
      case 'paste':
        this.#insert(key.text);
        return undefined;
      case 'newline':
        this.#insert('\n');
        return undefined;
      case 'enter':
        return this.#enter();
      case 'tab':
        void this.#complete();
        return undefined;
      case 'control':
        return this.#control(key.letter);
      case 'alt':
        this.#alt(key.letter);
        return undefined;
      default:
        this.#move(key.name);
        return undefined;
    }
  }

  /** Returns the text wrapped to `width`, after `prompt` on its first line. */
  view(width: number, prompt: string): EditorView {
    const indent = stringWidth(prompt);
    const available = Math.max(4, width - indent - 1);
    const rows: string[] = [''];
    let cursor = { row: 0, column: 0 };
    let column = 0;
    for (const { segment, index } of segmenter.segment(this.#text)) {
      const isBreak = segment === '\n' || segment === '\r\n';
      const shown = isBreak ? '' : printableText(segment.replaceAll('\t', '  '));
      const wide = stringWidth(shown);
      if (!isBreak && column + wide > available) {
        rows.push('');
        column = 0;
      }
      if (index === this.#at) cursor = { row: rows.length - 1, column };
      if (isBreak) {
        rows.push('');
        column = 0;
        continue;
      }
      rows[rows.length - 1] += shown;
      column += wide;
    }
    if (this.#at === this.#text.length) cursor = { row: rows.length - 1, column };
    return {
      lines: rows.map((row, at) => (at === 0 ? prompt : ' '.repeat(indent)) + row),
      row: cursor.row,
      column: cursor.column + indent,
    };
  }

  #enter(): EditorRequest | undefined {
    // A backslash at the end continues the message on the next line, for terminals without another key for it.
    if (this.#at === this.#text.length && this.#text.endsWith('\\')) {
      this.#text = `${this.#text.slice(0, -1)}\n`;
      this.#at = this.#text.length;
      return undefined;
    }
    const text = this.#text;
    if (text.trim() === '') return undefined;
    this.set('');
    this.remember(text);
    return { type: 'submit', text };
  }

  #control(letter: string): EditorRequest | undefined {
    switch (letter) {
      case 'a':
        this.#move('home');
        return undefined;
      case 'e':
        this.#move('end');
        return undefined;
      case 'b':
        this.#move('left');
        return undefined;
      case 'f':
        this.#move('right');
        return undefined;
      case 'p':
        this.#move('up');
        return undefined;
      case 'n':
        this.#move('down');
        return undefined;
      case 'd':
        if (this.#text === '') return { type: 'leave' };
        this.#move('delete');
        return undefined;
      case 'u':
        this.#cut(this.#lineStart(), this.#at);
        return undefined;
      case 'k':
        this.#cut(this.#at, this.#lineEnd());
        return undefined;
      case 'w':
        this.#cut(this.#wordStart(), this.#at);
        return undefined;
      case 'l':
        return { type: 'clear-screen' };
      default:
        return undefined;
    }
  }

  #alt(letter: string): void {
    if (letter === 'b') this.#at = this.#wordStart();
    if (letter === 'f') this.#at = this.#wordEnd();
    if (letter === 'd') this.#cut(this.#at, this.#wordEnd());
    if (letter === 'backspace') this.#cut(this.#wordStart(), this.#at);
  }

  #move(name: Exclude<Key['name'], 'text' | 'paste' | 'control' | 'alt'>): void {
    switch (name) {
      case 'left':
        this.#at = this.#before();
        return;
      case 'right':
        this.#at = this.#after();
        return;
      case 'word-left':
        this.#at = this.#wordStart();
        return;
      case 'word-right':
        this.#at = this.#wordEnd();
        return;
      case 'home':
        this.#at = this.#lineStart();
        return;
      case 'end':
        this.#at = this.#lineEnd();
        return;
      case 'backspace':
        this.#cut(this.#before(), this.#at);
        return;
      case 'delete':
        this.#cut(this.#at, this.#after());
        return;
      case 'up':
        this.#vertical(-1);
        return;
      case 'down':
        this.#vertical(1);
        return;
      default:
    }
  }

  /** Moves by a line; beyond the first and the last one, through the history. */
  #vertical(by: -1 | 1): void {
    const start = this.#lineStart();
    const column = this.#at - start;
    if (by === -1 && start > 0) {
      const previous = this.#text.lastIndexOf('\n', start - 2) + 1;
      this.#at = Math.min(previous + column, start - 1);
      return;
    }
    const end = this.#lineEnd();
    if (by === 1 && end < this.#text.length) {
      const next = this.#text.indexOf('\n', end + 1);
      this.#at = Math.min(end + 1 + column, next === -1 ? this.#text.length : next);
      return;
    }
    const wanted = this.#historyAt + by;
    if (wanted < 0 || wanted > this.#history.length) return;
    if (this.#historyAt === this.#history.length) this.#draft = this.#text;
    this.#historyAt = wanted;
    this.set(wanted === this.#history.length ? this.#draft : (this.#history[wanted] ?? ''));
  }

  async #complete(): Promise<void> {
    const before = this.#text.slice(0, this.#at);
    const { candidates } = await this.#deps.complete(before);
    // Meanwhile something else was typed.
    if (this.#text.slice(0, this.#at) !== before || candidates.length === 0) return;
    const common = commonStart(candidates);
    if (common.length > before.length) {
      this.#text = common + this.#text.slice(this.#at);
      this.#at = common.length;
    }
    this.#candidates = candidates.length > 1 ? candidates : [];
    this.#deps.changed();
  }

  #insert(text: string): void {
    this.#text = this.#text.slice(0, this.#at) + text + this.#text.slice(this.#at);
    this.#at += text.length;
  }

  #cut(from: number, to: number): void {
    this.#text = this.#text.slice(0, from) + this.#text.slice(to);
    this.#at = from;
  }

  /** Start of the character before the cursor: some consist of several code points. */
  #before(): number {
    return segmenter.segment(this.#text).containing(this.#at - 1)?.index ?? 0;
  }

  #after(): number {
    const found = segmenter.segment(this.#text).containing(this.#at);
    return found === undefined ? this.#text.length : found.index + found.segment.length;
  }

  #lineStart(): number {
    return this.#at === 0 ? 0 : this.#text.lastIndexOf('\n', this.#at - 1) + 1;
  }

  #lineEnd(): number {
    const end = this.#text.indexOf('\n', this.#at);
    return end === -1 ? this.#text.length : end;
  }

  #wordStart(): number {
    return this.#at - (/\S*\s*$/.exec(this.#text.slice(0, this.#at))?.[0].length ?? 0);
  }

  #wordEnd(): number {
    return this.#at + (/^\s*\S*/.exec(this.#text.slice(this.#at))?.[0].length ?? 0);
  }
}

/** Returns the longest text with which all candidates begin. */
function commonStart(candidates: readonly string[]): string {
  let [common = ''] = candidates;
  for (const one of candidates) while (!one.startsWith(common)) common = common.slice(0, -1);
  return common;
}
