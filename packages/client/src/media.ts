import type { MediaInfo, MediaList, MediaPage } from '@gatehouse/contract';
import type { CallOptions } from './calls.ts';
import type { Http } from './http.ts';
import { type RetryOptions, withRetry } from './retry.ts';

export interface UploadOptions extends CallOptions {
  /** File name; default: the name of the `File`. */
  readonly fileName?: string | undefined;
  /** Content type; default: the type of the `Blob`, or `application/octet-stream`. The server also detects the type. */
  readonly contentType?: string | undefined;
}

export interface MediaOptions extends CallOptions {
  /** Part of the file, as in a `Range` header: `bytes=0-1023`. */
  readonly range?: string | undefined;
}

export interface MediaCalls {
  /** `POST /media`: stores a file; use its id as an attachment of a turn. Never retried. */
  upload(data: Blob | Uint8Array<ArrayBuffer>, options?: UploadOptions): Promise<MediaInfo>;
  /** `GET /media/{id}/meta`. */
  mediaInfo(id: string, options?: CallOptions): Promise<MediaInfo>;
  /** `GET /media`: returns a page of the files that the token may see, newest first. */
  listMedia(page?: Partial<MediaPage>, options?: CallOptions): Promise<MediaList>;
  /** `GET /media/{id}`: returns the response with its body unread; the time limit covers the head. */
  media(id: string, options?: MediaOptions): Promise<Response>;
  /** `DELETE /media/{id}`: permanently deletes a file. */
  deleteMedia(id: string, options?: CallOptions): Promise<void>;
}

interface Limits {
  readonly retry: RetryOptions;
  readonly readTimeoutMs: number;
  readonly changeTimeoutMs: number;
}

export function createMedia(http: Http, { retry, readTimeoutMs, changeTimeoutMs }: Limits): MediaCalls {
  async function get(path: string, { signal, timeoutMs = readTimeoutMs }: CallOptions): Promise<unknown> {
    return await withRetry(async () => (await http.json({ method: 'GET', path, signal, timeoutMs })).body, retry, signal);
  }

  return {
    async upload(data, { fileName = nameOf(data), contentType = typeOf(data), signal, timeoutMs = changeTimeoutMs } = {}) {
      const path = fileName === undefined ? '/media' : `/media?${new URLSearchParams({ fileName })}`;
      const { body } = await http.json({ method: 'POST', path, bytes: data, headers: { 'content-type': contentType }, signal, timeoutMs });
      return body as MediaInfo;
    },
    mediaInfo: async (id, options = {}) => (await get(`${mediaPath(id)}/meta`, options)) as MediaInfo,
    listMedia: async (page = {}, options = {}) =>
      (await get(`/media?${new URLSearchParams(Object.entries(page).map(([name, value]) => [name, String(value)]))}`, options)) as MediaList,
    async media(id, { range, signal, timeoutMs = readTimeoutMs } = {}) {
      const headers = range === undefined ? {} : { range };
      const request = { method: 'GET', path: mediaPath(id), headers, signal, timeoutMs } as const;
      return await withRetry(async () => (await http.open(request)).response, retry, signal);
    },
    async deleteMedia(id, { signal, timeoutMs = changeTimeoutMs } = {}) {
      await http.json({ method: 'DELETE', path: mediaPath(id), signal, timeoutMs });
    },
  };
}

function mediaPath(id: string): string {
  return `/media/${encodeURIComponent(id)}`;
}

function nameOf(data: Blob | Uint8Array): string | undefined {
  return typeof File === 'function' && data instanceof File && data.name !== '' ? data.name : undefined;
}

function typeOf(data: Blob | Uint8Array): string {
  return data instanceof Blob && data.type !== '' ? data.type : 'application/octet-stream';
}
