import { ModelError } from '../model.ts';

/** A larger frame cannot be a delta of a model. */
const maxFrameBytes = 1_048_576;
const lf = 10;
const cr = 13;

/**
 * Turns the bytes of an event stream into text with whole frames only. Frames end at ASCII line feeds, so whole
 * frames never split a UTF-8 sequence, however the stream was divided into reads.
 */
export class SseReader {
  /** Bytes not yet returned, in a buffer that grows by doubling: the cost stays linear for reads of one byte too. */
  #held = Buffer.allocUnsafe(0);
  #length = 0;
  /** Bytes of `#held` known to contain no frame end. */
  #searched = 0;
  #begun = false;

  push(chunk: Buffer): void {
    const needed = this.#length + chunk.length;
    if (needed > this.#held.length) this.#grow(needed);
    this.#held.set(chunk, this.#length);
    this.#length = needed;
  }

  /** Returns all whole frames that arrived since the last call; empty when there are none. */
  take(): string {
    const whole = this.#lastFrameEnd();
    if (this.#length - whole > maxFrameBytes) throw new ModelError('bad_response', 'the provider sent a stream frame larger than 1 MiB');
    if (whole === 0) {
      this.#searched = this.#length;
      return '';
    }
    const text = this.#held.toString('utf8', 0, whole);
    if (whole < this.#length) this.#held.copyWithin(0, whole, this.#length);
    this.#length -= whole;
    this.#searched = this.#length;
    return this.#withoutMark(text);
  }

  /** Returns what is left when the stream ended: whole frames, then perhaps a last one without its empty line. */
  rest(): string {
    const text = this.#held.toString('utf8', 0, this.#length);
    this.#length = 0;
    this.#searched = 0;
    return this.#withoutMark(text);
  }

  #grow(needed: number) {
    const grown = Buffer.allocUnsafe(Math.max(needed, this.#held.length * (needed < 65_536 ? 4 : 2), 2048));
    this.#held.copy(grown, 0, 0, this.#length);
    this.#held = grown;
  }

  #lastFrameEnd() {
    const held = this.#held;
    for (let i = this.#length - 1; i >= this.#searched; i -= 1) {
      if (held[i] !== lf || i === 0) continue;
      const before = held[i - 1];
      if (before === lf || (before === cr && i > 1 && held[i - 2] === lf)) return i + 1;
    }
    return 0;
  }

  #withoutMark(text: string) {
    if (this.#begun) return text;
    this.#begun = true;
    return text.startsWith('\uFEFF') ? text.slice(1) : text;
  }
}

/** One frame: its `data:` lines joined, and the name of its event. */
export interface SseFrame {
  readonly event: string;
  /** Undefined for comments and for frames without data. */
  readonly data: string | undefined;
}

/** Returns the end of the frame that starts at `at`: after its empty line, or at the end of the text. */
export function frameEnd(text: string, at: number): number {
  for (let i = text.indexOf('\n', at); i !== -1; i = text.indexOf('\n', i + 1)) {
    const next = text.charCodeAt(i + 1);
    if (next === lf) return i + 2;
    if (next === cr && text.charCodeAt(i + 2) === lf) return i + 3;
  }
  return text.length;
}

export function parseFrame(frame: string): SseFrame {
  let event = '';
  let data: string | undefined;
  for (const raw of frame.split('\n')) {
    const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
    const colon = line.indexOf(':');
    const field = colon === -1 ? line : line.slice(0, colon);
    if (field !== 'data' && field !== 'event') continue;
    const value = colon === -1 ? '' : line.slice(line.charCodeAt(colon + 1) === 32 ? colon + 2 : colon + 1);
    if (field === 'event') event = value;
    else data = data === undefined ? value : `${data}\n${value}`;
  }
  return { event, data };
}
