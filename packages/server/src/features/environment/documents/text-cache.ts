import type { DocumentText } from './api.ts';

/** Bounds of kept texts: a character takes up to two bytes. */
const maxCharacters = 8_000_000;
const maxEntries = 200;

/** Texts of documents by digest; those used longest ago are dropped first. */
export class TextCache {
  readonly #texts = new Map<string, { readonly document: DocumentText; readonly size: number }>();
  #size = 0;

  get(key: string): DocumentText | undefined {
    const found = this.#texts.get(key);
    if (found === undefined) return undefined;
    this.#texts.delete(key);
    this.#texts.set(key, found);
    return found.document;
  }

  set(key: string, document: DocumentText): void {
    this.#drop(key);
    const size = document.parts.reduce((sum, { label, text }) => sum + label.length + text.length, 0);
    this.#texts.set(key, { document, size });
    this.#size += size;
    for (const oldest of this.#texts.keys()) {
      if (this.#size <= maxCharacters && this.#texts.size <= maxEntries) return;
      this.#drop(oldest);
    }
  }

  #drop(key: string): void {
    this.#size -= this.#texts.get(key)?.size ?? 0;
    this.#texts.delete(key);
  }
}
