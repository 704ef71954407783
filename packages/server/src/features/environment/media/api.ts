import type { Readable } from 'node:stream';
import type { MediaInfo, MediaList, MediaPage } from '@gatehouse/contract';
import type { CallContext } from '../../../kernel/call-context.ts';

/** Stored files, as other features see them. A file that the caller may not use fails exactly like an unknown one. */
export interface MediaApi {
  /** Returns the facts of a media file that the caller may use; fails with `not_found` otherwise. */
  find(id: string, call: CallContext): Promise<MediaInfo>;
  /** Returns the whole file, for a model; undefined when it is gone. Authority was checked when the message was accepted. */
  read(id: string): Promise<Buffer | undefined>;
}

export interface Upload {
  /** The bytes as they arrive. When it throws, nothing is kept. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Type declared by the client: only a hint, the bytes decide. */
  readonly contentType?: string | undefined;
  readonly fileName?: string | undefined;
  /** Bytes, when known before the first one arrived. */
  readonly size?: number | undefined;
  /** Expiry, whatever `media.retentionDays` says; applied at the next scan of the folder. */
  readonly expiresAtMs?: number | undefined;
}

/** A media file held open: its content cannot change while it is read. */
export interface OpenMediaFile extends AsyncDisposable {
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
  /** Opens a media file; the caller closes it. Fails with `not_found` like `find`. */
  open(id: string, call: CallContext): Promise<OpenMediaFile>;
  /** Lists media of the caller, or of everyone for an admin; newest first. */
  list(page: MediaPage, call: CallContext): Promise<MediaList>;
  /** Deletes it for good and records that. Fails with `not_found` like `find`. */
  remove(id: string, call: CallContext): Promise<void>;
}
