import { AppError } from '../../../kernel/app-error.ts';
import type { Live } from '../../../kernel/config/live.ts';
import type { MediaConfig } from './config.ts';
import type { Shelf } from './media-index.ts';

const maxUploads = 32;
const maxUploadsPerPrincipal = maxUploads / 2;

/** An upload that is being received. Disposal frees its slot, and its bytes unless the index has them. */
export interface Incoming extends Disposable {
  /** Bytes received so far. */
  readonly size: number;
  /** Counts received bytes before they are written; throws when the file or the store becomes too large. */
  add(bytes: number): void;
}

/** Limits concurrent uploads and the size of the store, including what is not in the index yet. */
export class Uploads {
  readonly #config: Live<MediaConfig>;
  readonly #shelf: Pick<Shelf, 'bytes' | 'count'>;
  #running = 0;
  readonly #runningOf = new Map<string, number>();
  /** Bytes of uploads that are not in the index yet. */
  #coming = 0;

  constructor(config: Live<MediaConfig>, shelf: Pick<Shelf, 'bytes' | 'count'>) {
    this.#config = config;
    this.#shelf = shelf;
  }

  /** Begins an upload of `size` bytes, if that is known; throws at a limit. */
  begin(owner: string, size: number): Incoming {
    this.#refuseTooLarge(size);
    this.#refuseFull(size);
    if (this.#shelf.count + this.#running >= this.#config.current.maxFiles)
      throw new AppError(
        'precondition_failed',
        `The media store is full: expected at most ${this.#config.current.maxFiles} files (media.maxFiles); delete media first`,
      );
    this.#refuseTooMany(owner);
    this.#count(owner, 1);
    let received = 0;
    return {
      get size() {
        return received;
      },
      add: (bytes) => {
        this.#refuseTooLarge(received + bytes);
        this.#refuseFull(bytes);
        received += bytes;
        this.#coming += bytes;
      },
      [Symbol.dispose]: () => {
        this.#count(owner, -1);
        this.#coming -= received;
      },
    };
  }

  #refuseFull(more: number): void {
    if (this.#shelf.bytes + this.#coming + more > this.#config.current.maxTotalBytes)
      throw new AppError(
        'precondition_failed',
        `The media store is full: expected at most ${this.#config.current.maxTotalBytes} bytes in all (media.maxTotalBytes); delete media first`,
      );
  }

  #refuseTooLarge(size: number): void {
    if (size > this.#config.current.maxFileBytes)
      throw new AppError('payload_too_large', `The file must not be larger than ${this.#config.current.maxFileBytes} bytes (media.maxFileBytes)`);
  }

  #refuseTooMany(owner: string): void {
    const retry = { retryAfterMs: 1_000 };
    if (this.#running >= maxUploads) throw new AppError('rate_limited', `More than ${maxUploads} uploads at once`, retry);
    if ((this.#runningOf.get(owner) ?? 0) >= maxUploadsPerPrincipal)
      throw new AppError('rate_limited', `More than ${maxUploadsPerPrincipal} uploads of this caller at once`, retry);
  }

  #count(owner: string, change: 1 | -1): void {
    this.#running += change;
    const left = (this.#runningOf.get(owner) ?? 0) + change;
    if (left === 0) this.#runningOf.delete(owner);
    else this.#runningOf.set(owner, left);
  }
}
