import type { JsonFragment } from '../../kernel/json-fragment.ts';
import { frameEnd, parseFrame } from './sse-reader.ts';

const quote = 34;
const backslash = 92;
const probe = 'gatehouse probe';

export interface FrameHandler {
  /** Called with the inside of the literal of a frame that carries nothing but text. */
  literal(inside: JsonFragment): void;
  /** Called with any other frame, including its empty line. */
  frame(frame: string): void;
}

/**
 * Recognizes the frames of a stream that carry nothing but text. Providers repeat such a frame byte for
 * byte around the text, so one fully parsed frame teaches the constant prefix and suffix; a later frame
 * that is exactly prefix + string literal + suffix means the same with another text, and need not be parsed. Until `learn`
 * is called, every frame is (`providers.<id>.fastStreams`).
 */
export class TextFrames {
  readonly #key: string;
  readonly #textOf: (data: string) => string | undefined;
  #prefix = '';
  #suffix = '';
  /** Text between two literals when one text frame follows another. */
  #joint = '';
  #hits = 0;
  /** Text frames to skip before the next lesson; grows while lessons do not pay off, for providers that number their frames. */
  #pause = 0;
  #waited = 0;
  #lessons = 0;

  /**
   * `key` is the quoted property that holds the text; `textOf` parses the data of one frame and returns its text when the
   * frame carries nothing else that matters.
   */
  constructor(key: string, textOf: (data: string) => string | undefined) {
    this.#key = key;
    this.#textOf = textOf;
  }

  /** Passes the frames of `text`, all of them whole, to `handler` in order. */
  read(text: string, handler: FrameHandler): void {
    if (text === '') return;
    const prefix = this.#prefix;
    if (prefix === '') return this.#each(text, handler);
    const suffix = this.#suffix;
    // One native search over the whole read costs far less than a comparison per frame. Comparing slices is several
    // times faster than startsWith and endsWith.
    // Two whole text frames are longer than that; a single one, as from a paced stream, needs no search.
    const fragments = text.length < 2 * this.#joint.length ? [text] : text.split(this.#joint);
    const last = fragments.length - 1;
    for (let i = 0; i <= last; i += 1) {
      let fragment = fragments[i] ?? '';
      const opens = i > 0 || fragment.slice(0, prefix.length) === prefix;
      if (i === 0 && opens) fragment = fragment.slice(prefix.length);
      const closes = i < last || fragment.slice(-suffix.length) === suffix;
      if (i === last && closes) fragment = fragment.slice(0, fragment.length - suffix.length);
      if (opens && closes && isLiteral(fragment)) {
        this.#hits += 1;
        handler.literal(fragment);
      } else {
        this.#each((opens ? prefix : '') + fragment + (closes ? suffix : ''), handler);
      }
    }
  }

  /** Handles frame by frame, until a lesson makes the rest cheap again. */
  #each(text: string, handler: FrameHandler) {
    const joint = this.#joint;
    for (let at = 0; at < text.length;) {
      const end = frameEnd(text, at);
      handler.frame(text.slice(at, end));
      at = end;
      if (this.#joint !== joint) return this.read(text.slice(at), handler);
    }
  }

  /** Learns from a frame whose text is known; `frame` includes its empty line. */
  learn(frame: string, text: string): void {
    if (this.#hits >= 8) {
      this.#pause = 0;
      this.#lessons = 0;
    }
    this.#hits = 0;
    this.#waited += 1;
    if (text === '' || this.#waited <= this.#pause || !/\n\r?\n$/.test(frame)) return;
    this.#waited = 0;
    this.#lessons += 1;
    // The first frame often differs from the rest (it names the role), so two lessons are free.
    if (this.#lessons > 2) this.#pause = Math.min(64, Math.max(2, this.#pause * 2));
    this.#prefix = '';
    for (let at = frame.indexOf(this.#key); at !== -1; at = frame.indexOf(this.#key, at + 1)) {
      const start = stringStart(frame, at + this.#key.length);
      const end = start === -1 ? -1 : literalEnd(frame, start);
      if (end === -1) continue;
      const prefix = frame.slice(0, start);
      const suffix = frame.slice(end);
      // Only the literal was changed; when the text follows it, the literal is the text.
      const data = parseFrame(prefix + probe + suffix).data;
      if (data === undefined || this.#textOf(data) !== probe) continue;
      this.#prefix = prefix;
      this.#suffix = suffix;
      this.#joint = suffix + prefix;
      return;
    }
  }
}

/** True when `inside` between quotes is one JSON string. */
function isLiteral(inside: string): inside is JsonFragment {
  let escaped = false;
  for (let i = 0; i < inside.length; i += 1) {
    const code = inside.charCodeAt(i);
    if (code === quote || code < 32) return false;
    if (code === backslash) {
      escaped = true;
      i += 1;
    }
  }
  if (!escaped) return true;
  try {
    return typeof JSON.parse(`"${inside}"`) === 'string';
  } catch {
    return false;
  }
}

/** Returns the index of the closing quote of the literal whose inside starts at `at`; -1 when it does not close. */
function literalEnd(text: string, at: number): number {
  for (let i = at; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code === quote) return i;
    if (code === backslash) i += 1;
  }
  return -1;
}

/** Returns the index after the opening quote of the value that follows a key ending at `at`; -1 when no string follows. */
function stringStart(text: string, at: number): number {
  const match = /^\s*:\s*"/.exec(text.slice(at, at + 16));
  return match === null ? -1 : at + match[0].length;
}
