import type { FileHandle } from 'node:fs/promises';
import { MediaId, type MediaInfo } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { type CallContext, isAdmin } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { openInside, readFileInside } from '../../../kernel/safe-path.ts';
import type { MediaLibrary, OpenMediaFile } from './api.ts';
import { typeOfExtension } from './content-type.ts';
import type { Shelf } from './media-index.ts';
import { readSidecar, type Sidecar } from './sidecar.ts';

interface ReadDeps {
  readonly dir: string;
  readonly clock: Clock;
  readonly shelf: Shelf;
  readonly maxFileBytes: number;
}

/** One error for missing, foreign and malformed ids. */
export function unknownMediaFile(): AppError {
  return new AppError('not_found', 'Media file not found', { param: 'mediaId' });
}

/** Opens a media file that the caller may use. */
export async function openMediaFile({ dir, clock }: Pick<ReadDeps, 'dir' | 'clock'>, id: string, call: CallContext): Promise<OpenMediaFile> {
  const sidecar = await usableSidecar(dir, id, call);
  if (sidecar.expiresAt !== undefined && sidecar.expiresAt <= clock.now()) throw unknownMediaFile();
  const handle = await openFile(dir, id);
  const { size, mtimeMs } = await handle.stat();
  return {
    info: infoOf(id, sidecar, { size, mtimeMs }),
    // The digest is valid only while the size matches the one it was computed with.
    etag:
      sidecar.sha256 !== undefined && sidecar.size === size ? `"${sidecar.sha256}"` : `W/"${size.toString(36)}-${Math.floor(mtimeMs).toString(36)}"`,
    stream: (start, end) => handle.createReadStream({ start, end, autoClose: false }),
    [Symbol.asyncDispose]: () => handle.close(),
  };
}

async function usableSidecar(dir: string, id: string, call: CallContext): Promise<Sidecar> {
  if (!MediaId.safeParse(id).success) throw unknownMediaFile();
  const sidecar = await readSidecar(dir, id);
  if (!isAdmin(call) && sidecar.owner !== call.identity.principalId) throw unknownMediaFile();
  return sidecar;
}

async function openFile(dir: string, id: string): Promise<FileHandle> {
  try {
    return await openInside(dir, id);
  } catch (error) {
    throw isMissing(error) ? unknownMediaFile() : error;
  }
}

/** Returns the bytes of a media file, regardless of its owner; undefined when there is none. */
export async function readMediaFile({ dir, maxFileBytes }: Pick<ReadDeps, 'dir' | 'maxFileBytes'>, id: string): Promise<Buffer | undefined> {
  if (!MediaId.safeParse(id).success) return undefined;
  try {
    return await readFileInside(dir, id, { maxBytes: maxFileBytes });
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Lists the media of the caller, for admins those of everyone, newest first. */
export async function listMedia({ dir, clock, shelf }: ReadDeps, { limit, offset, search }: Parameters<MediaLibrary['list']>[0], call: CallContext) {
  const admin = isAdmin(call);
  const nowMs = clock.now();
  const term = search?.toLowerCase();
  const mine = [...shelf.entries()].filter(
    ([id, { owner, expiresAtMs = Infinity, fileName = '', contentType = typeOfExtension(id) }]) =>
      expiresAtMs > nowMs &&
      (admin || owner === call.identity.principalId) &&
      (term === undefined || [id, fileName, contentType].some((text) => text.toLowerCase().includes(term))),
  );
  const page = mine.toSorted(([a, x], [b, y]) => y.listedAtMs - x.listedAtMs || (a < b ? 1 : -1)).slice(offset, offset + limit);
  const media = await Promise.all(
    page.map(async ([id, { size, listedAtMs }]) => infoOf(id, await readSidecar(dir, id), { size, mtimeMs: listedAtMs })),
  );
  return { media, total: mine.length, totalBytes: mine.reduce((sum, [, { size }]) => sum + size, 0) };
}

const isMissing = (error: unknown): boolean => error instanceof AppError && error.code === 'not_found';

function infoOf(mediaId: string, sidecar: Sidecar, file: { readonly size: number; readonly mtimeMs: number }): MediaInfo {
  return {
    mediaId,
    contentType: sidecar.contentType ?? typeOfExtension(mediaId),
    size: file.size,
    ...(sidecar.fileName !== undefined && { fileName: sidecar.fileName }),
    savedAt: sidecar.savedAt ?? Math.floor(file.mtimeMs),
  };
}
