import type { DocumentPart } from '../api.ts';

export interface ReadLimits {
  readonly maxCharacters: number;
  readonly maxPages: number;
}

export type RefusalKind = 'encrypted' | 'broken' | 'unsupported' | 'too_large';

/** The document cannot be read; the message says why, as the end of "The document …". */
export class Refused extends Error {
  readonly kind: RefusalKind;

  constructor(kind: RefusalKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Thrown when a limit on the text is reached: readers stop, and the text so far is the result. */
export class Full extends Error {}

/** Longer parts are divided, so that a place in them can be cited and searched. */
const flowCharacters = 8000;
const maxLabel = 120;

/** Collects the text of a document in parts, up to the limits. */
export class Sink {
  readonly notes: string[] = [];
  pageCount: number | undefined;
  /** Pages without text. */
  scannedPages: readonly number[] = [];
  readonly #limits: ReadLimits;
  readonly #parts: { label: string; text: string[]; size: number }[] = [];
  #characters = 0;
  #pages = 0;

  constructor(limits: ReadLimits) {
    this.#limits = limits;
  }

  get characters(): number {
    return this.#characters;
  }

  /** Begins a page, sheet, slide or chapter; these count against the page limit. */
  page(label: string): void {
    this.#pages += 1;
    if (this.#pages > this.#limits.maxPages) throw new Full();
    this.section(label);
  }

  /** Begins a part at a heading. */
  section(label: string): void {
    this.#parts.push({ label: label.replace(/\s+/g, ' ').trim().slice(0, maxLabel), text: [], size: 0 });
  }

  /** Adds a paragraph, with an empty line before the next one. */
  paragraph(text: string): void {
    const trimmed = text.trim();
    if (trimmed !== '') this.add(`${trimmed}\n\n`);
  }

  add(text: string): void {
    const room = this.#limits.maxCharacters - this.#characters;
    const cut = text.length <= room ? text : cutAt(text, room);
    for (let at = 0; at < cut.length;) {
      const part = this.#current();
      const piece = cutAt(cut.slice(at), 2 * flowCharacters);
      part.text.push(piece);
      part.size += piece.length;
      at += piece.length;
    }
    this.#characters += cut.length;
    if (cut.length < text.length) throw new Full();
  }

  note(text: string): void {
    if (this.notes.length < 20 && !this.notes.includes(text)) this.notes.push(text);
  }

  finish(): DocumentPart[] {
    return this.#parts.map(({ label, text }) => ({ label, text: text.join('').trim() })).filter(({ text }) => text !== '');
  }

  #current(): { label: string; text: string[]; size: number } {
    const last = this.#parts.at(-1);
    if (last !== undefined && last.size < flowCharacters) return last;
    const next = { label: last === undefined ? '' : continued(last.label), text: [], size: 0 };
    this.#parts.push(next);
    return next;
  }
}

function continued(label: string): string {
  return label === '' || label.endsWith('(continued)') ? label : `${label} (continued)`;
}

function cutAt(text: string, most: number): string {
  const cut = text.slice(0, most);
  // A lone half of a pair at the end; a text that is ill-formed elsewhere stays as it is.
  return cut.length < text.length && /[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut;
}
