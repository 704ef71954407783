import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import type { MediaInfo } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { newId } from '../../../kernel/ids.ts';
import { type Draft, draftInside, removeInside, writeFileInside } from '../../../kernel/safe-path.ts';
import type { Upload } from './api.ts';
import { createInspector } from './content-type.ts';
import { cleanFileName } from './file-name.ts';
import type { Shelf } from './media-index.ts';
import { type Sidecar, sidecarOf } from './sidecar.ts';
import type { Uploads } from './uploads.ts';

interface SaveDeps {
  readonly dir: string;
  readonly clock: Clock;
  readonly shelf: Shelf;
  readonly uploads: Uploads;
}

/** Stores an upload of a principal as a new media file. */
export async function saveMediaFile({ dir, clock, shelf, uploads }: SaveDeps, upload: Upload, owner: string): Promise<MediaInfo> {
  try {
    using incoming = uploads.begin(owner, upload.size ?? 0);
    await mkdir(dir, { recursive: true, mode: 0o700 });
    await using draft = await draftInside(dir);
    const hash = createHash('sha256');
    const inspector = createInspector();
    for await (const chunk of upload.body) {
      incoming.add(chunk.length);
      hash.update(chunk);
      inspector.add(chunk);
      await draft.write(chunk);
    }
    const { size } = incoming;
    if (size === 0) throw new AppError('invalid_params', 'body: expected the bytes of a file, found none', { param: 'body' });
    const fileName = cleanFileName(upload.fileName);
    const { contentType, extension } = await inspector.decide(upload.contentType, fileName);
    const about = { contentType, savedAt: clock.now(), size, ...(fileName !== undefined && { fileName }) };
    const mediaId = `${newId('md')}.${extension}`;
    const { expiresAtMs } = upload;
    await keep(dir, mediaId, draft, { ...about, owner, sha256: hash.digest('hex'), ...(expiresAtMs !== undefined && { expiresAt: expiresAtMs }) });
    shelf.put(mediaId, { owner, size, savedAtMs: about.savedAt, listedAtMs: about.savedAt, expiresAtMs, fileName, contentType });
    return { mediaId, ...about };
  } catch (error) {
    throw storageFault(error);
  }
}

/** Writes the sidecar first: a file counts as stored as soon as it has its name, and must have an owner by then. */
async function keep(dir: string, id: string, draft: Draft, sidecar: Sidecar): Promise<void> {
  try {
    await writeFileInside(dir, sidecarOf(id), JSON.stringify(sidecar), { maxBytes: 16 * 1024 });
    await draft.keep(id);
  } catch (error) {
    await removeInside(dir, sidecarOf(id)).catch(() => false);
    throw error;
  }
}

/** A full disk is not a defect of this server, and may recover. */
function storageFault(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EIO' || code === 'EROFS' || code === 'EFBIG')
    return new AppError('unavailable', 'The media file could not be stored: the disk is full or rejects writes', { cause: error });
  return error;
}
