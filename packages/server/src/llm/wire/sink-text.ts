import { append, type JsonFragment, joinFragments, textOf, toFragment } from '../../kernel/json-fragment.ts';
import type { ModelSink } from '../model.ts';

/** Collects the text of a streamed answer while it is passed on: fragments stay escaped and are unescaped once, at the end. */
export class SinkText {
  readonly sink: ModelSink;
  /** Characters so far, in escaped form. */
  size = 0;
  #read: JsonFragment[] = [];
  #whole = toFragment('');

  constructor(sink: ModelSink) {
    this.sink = sink;
  }

  escaped(fragment: JsonFragment): void {
    this.size += fragment.length;
    this.#read.push(fragment);
    this.sink.text(fragment);
  }

  plain(text: string): void {
    if (text !== '') this.escaped(toFragment(text));
  }

  /** Ends one read of the upstream; false asks for a pause. */
  flush(): boolean {
    if (this.#read.length === 0) return true;
    // Fragments are slices of their read's text; joining copies them out of it, so that it can be freed.
    this.#whole = append(this.#whole, joinFragments(this.#read));
    this.#read = [];
    return this.sink.flush();
  }

  value(): string {
    return textOf(append(this.#whole, joinFragments(this.#read)));
  }
}
