import type { ModelSink } from '../model.ts';

/** Collects the text of a streamed answer while it is handed on: pieces stay escaped and are unescaped once, at the end. */
export class SinkText {
  readonly sink: ModelSink;
  /** Characters so far, escaped as they are. */
  size = 0;
  #read: string[] = [];
  #whole = '';

  constructor(sink: ModelSink) {
    this.sink = sink;
  }

  /** A piece as the inside of a JSON string literal. */
  escaped(piece: string): void {
    this.size += piece.length;
    this.#read.push(piece);
    this.sink.text(piece);
  }

  plain(text: string): void {
    if (text !== '') this.escaped(JSON.stringify(text).slice(1, -1));
  }

  /** Ends one read of the upstream; false asks for a pause. */
  flush(): boolean {
    if (this.#read.length === 0) return true;
    // Pieces are slices of the text of their read; joining copies them out of it, so that it can be freed.
    this.#whole += this.#read.length === 1 ? this.#read[0] : this.#read.join('');
    this.#read = [];
    return this.sink.flush();
  }

  value(): string {
    const text: unknown = JSON.parse(`"${this.#whole}${this.#read.join('')}"`);
    return String(text);
  }
}
