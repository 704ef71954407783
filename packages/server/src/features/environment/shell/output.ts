import type { Readable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import type { Clock } from '../../../kernel/clock.ts';

/** Output of a command, both streams in order of arrival. */
export interface Output {
  push(chunk: Buffer): void;
}

const headBytes = 64 * 1024;
const tailBytes = 192 * 1024;

/** Keeps the beginning and the end, and counts what lies between. */
export class Ends implements Output {
  readonly #head: Buffer[] = [];
  #headBytes = 0;
  readonly #tail = new Ring(tailBytes);
  total = 0;

  push(chunk: Buffer): void {
    this.total += chunk.length;
    const forHead = Math.min(chunk.length, headBytes - this.#headBytes);
    if (forHead > 0) {
      this.#head.push(own(chunk.subarray(0, forHead)));
      this.#headBytes += forHead;
    }
    if (forHead < chunk.length) this.#tail.push(chunk.subarray(forHead));
  }

  text(): string {
    const { bytes, from } = this.#tail.read(0, tailBytes);
    const head = toText(Buffer.concat(this.#head));
    return from === 0 ? head + toText(bytes) : `${head}\n[… ${from} bytes left out …]\n${toText(bytes)}`;
  }
}

/** The newest bytes, addressed by their offset in the whole output. */
export class Ring implements Output {
  readonly #most: number;
  #chunks: Buffer[] = [];
  #start = 0;
  /** Offset of the next byte in the whole output. */
  end = 0;

  constructor(most: number) {
    this.#most = most;
  }

  push(chunk: Buffer): void {
    this.end += chunk.length;
    const last = this.#chunks.at(-1);
    // Storing many small writes as objects would cost more than their bytes.
    if (last !== undefined && last.length + chunk.length <= 16_384) this.#chunks[this.#chunks.length - 1] = Buffer.concat([last, chunk]);
    else this.#chunks.push(own(chunk));
    while (this.end - this.#start > this.#most) {
      const [first] = this.#chunks;
      if (first === undefined) return;
      const excess = this.end - this.#start - this.#most;
      if (first.length > excess) {
        this.#chunks[0] = first.subarray(excess);
        this.#start += excess;
      } else {
        this.#chunks.shift();
        this.#start += first.length;
      }
    }
  }

  /** Returns at most `most` bytes from `offset`, and their actual offset: later than requested when the beginning is lost. */
  read(offset: number, most: number): { readonly bytes: Buffer; readonly from: number } {
    const from = Math.min(this.end, Math.max(offset, this.#start));
    const parts: Buffer[] = [];
    let at = this.#start;
    for (const chunk of this.#chunks) {
      if (at + chunk.length > from && at < from + most) parts.push(chunk.subarray(Math.max(0, from - at), from + most - at));
      at += chunk.length;
    }
    return { bytes: Buffer.concat(parts), from };
  }
}

/** Copies a chunk that would otherwise keep a much larger read buffer alive. */
function own(piece: Buffer): Buffer {
  return piece.buffer.byteLength > piece.length * 2 ? Buffer.from(piece) : piece;
}

/** Converts output to text for a model, without invalid UTF-8 and terminal control sequences. */
export function toText(bytes: Buffer): string {
  return stripVTControlCharacters(bytes.toString('utf8'))
    .replaceAll('\r\n', '\n')
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, '\ufffd');
}

const burstBytes = 256 * 1024;
const restMs = 20;

/** Forwards both streams at a pace that leaves the daemon time for others. Settles when both have ended. */
export async function collect(streams: readonly Readable[], output: Output, clock: Clock): Promise<void> {
  let burst = 0;
  await Promise.all(
    streams.map((stream) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      stream.on('data', (chunk: Buffer) => {
        output.push(chunk);
        burst += chunk.length;
        if (burst < burstBytes) return;
        burst = 0;
        stream.pause();
        clock.after(restMs, () => stream.resume());
      });
      stream.on('error', () => resolve());
      stream.on('close', () => resolve());
      return promise;
    }),
  );
}
