import type { Readable } from 'node:stream';
import type { MediaInfo, MediaList, MediaPage } from '@gatehouse/contract';
import type { CallContext } from '../../../kernel/call-context.ts';

/** Stored files, as other features see them. Whoever may not use one is told what whoever names an unknown one is told. */
export interface MediaApi {
  /** Facts of a medium that the caller may use; `not_found` otherwise. */
  find(id: string, call: CallContext): Promise<MediaInfo>;
  /** The whole of it, for a model; undefined when it is gone. Authority was checked when the message was taken. */
  read(id: string): Promise<Buffer | undefined>;
}

export interface Upload {
  /** The bytes as they come. When it throws, nothing is kept. */
  readonly body: AsyncIterable<Uint8Array>;
  /** As declared by the client: a hint, the bytes decide. */
  readonly contentType?: string | undefined;
  readonly fileName?: string | undefined;
  /** Bytes, when known before the first one came. */
  readonly size?: number | undefined;
  /** When it goes by itself, whatever `media.retentionDays` says; at the next look at the folder. */
  readonly expiresAtMs?: number | undefined;
}

/** A medium held open: what it is cannot change any more while it is read. */
export interface OpenMedium extends AsyncDisposable {
  readonly info: MediaInfo;
  /** Entity tag with its quotes (RFC 9110 §8.8.3); weak for a file that was put there by hand. */
  readonly etag: string;
  /** Bytes from `start` to `end`, both included. */
  stream(start: number, end: number): Readable;
}

/** The same files, as the routes see them. */
export interface MediaLibrary extends MediaApi {
  readonly maxFileBytes: number;
  /**
   * Keeps an upload for the caller; resolves when it is synced to disk. Fails with `payload_too_large` beyond
   * `media.maxFileBytes`, `precondition_failed` when the store is full, `rate_limited` with too many uploads under way.
   */
  save(upload: Upload, call: CallContext): Promise<MediaInfo>;
  /** The caller closes it. `not_found` as of `find`. */
  open(id: string, call: CallContext): Promise<OpenMedium>;
  /** Media of the caller, of everyone for an admin; newest first. */
  list(page: MediaPage, call: CallContext): Promise<MediaList>;
  /** Removes it for good, on the record. `not_found` as of `find`. */
  remove(id: string, call: CallContext): Promise<void>;
}
