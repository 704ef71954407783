import type { ModelSink } from '../model.ts';

/** Collects the text of a streamed answer while it is passed on: fragments stay escaped and are unescaped once, at the end. */
export class SinkText {
  readonly sink: ModelSink;
  /** Characters so far, in escaped form. */
  size = 0;
  #read: string[] = [];
  #whole = '';

  constructor(sink: ModelSink) {
    this.sink = sink;
  }

  /** Adds a fragment: the inside of a JSON string literal. */
  escaped(fragment: string): void {
    this.size += fragment.length;
    this.#read.push(fragment);
    this.sink.text(fragment);
  }

  plain(text: string): void {
    if (text !== '') this.escaped(JSON.stringify(text).slice(1, -1));
  }

  /** Ends one read of the upstream; false asks for a pause. */
  flush(): boolean {
    if (this.#read.length === 0) return true;
    // Fragments are slices of their read's text; joining copies them out of it, so that it can be freed.
    this.#whole += this.#read.length === 1 ? this.#read[0] : this.#read.join('');
    this.#read = [];
    return this.sink.flush();
  }

  value(): string {
    const text: unknown = JSON.parse(`"${this.#whole}${this.#read.join('')}"`);
    return String(text);
  }
}
