import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { MediaId, type MediaInfo } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import { recordAudit } from '../../../kernel/audit.ts';
import { type CallContext, isAdmin } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { newId } from '../../../kernel/ids.ts';
import type { Log } from '../../../kernel/log.ts';
import { type Draft, draftInside, openInside, readFileInside, removeInside, writeFileInside } from '../../../kernel/safe-path.ts';
import type { MediaLibrary, OpenMedium, Upload } from './api.ts';
import type { MediaConfig } from './config.ts';
import { createInspector, typeOfExtension } from './content-type.ts';
import { cleanFileName } from './file-name.ts';
import { createShelf } from './media-index.ts';
import { readSidecar, type Sidecar, sidecarOf } from './sidecar.ts';

export interface MediaDeps {
  /** Created (0700) when it is missing. */
  readonly dir: string;
  readonly config: MediaConfig;
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
}

export interface Media extends AsyncDisposable {
  readonly api: MediaLibrary;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const maxUploads = 32;
const maxUploadsPerPrincipal = maxUploads / 2;

/** One error for missing, foreign and malformed ids. */
function unknownMedium(): AppError {
  return new AppError('not_found', 'There is no such medium', { param: 'mediaId' });
}

/** Files that clients uploaded, each with a sidecar, in one folder (http-gateway.md §4.7). */
export async function createMedia(deps: MediaDeps): Promise<Media> {
  const { dir, config, clock, log } = deps;
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const shelf = createShelf(dir);
  const ending = new AbortController();
  let uploads = 0;
  const uploadsOf = new Map<string, number>();
  /** Bytes of uploads that are not in the index yet. */
  let coming = 0;
  let cancelSweep = (): void => {};
  let sweeping = sweep();
  /** Not awaited at start: reading works without it. */
  const loaded = sweeping;

  /** Runs at start and hourly: syncs with the folder and removes media past their retention. */
  async function sweep(): Promise<void> {
    try {
      await shelf.refresh(clock.ageNow() - hourMs, ending.signal);
      await removeExpired();
    } catch (error) {
      log.warn({ err: error }, 'Failed to scan the media folder');
    }
    if (ending.signal.aborted) return;
    cancelSweep = clock.after(hourMs, () => {
      sweeping = sweep();
    });
  }

  async function removeExpired(): Promise<void> {
    const nowMs = clock.ageNow();
    const oldest = config.retentionDays === undefined ? Number.NEGATIVE_INFINITY : nowMs - config.retentionDays * dayMs;
    let removed = 0;
    for (const [id, { savedAtMs, expiresAtMs }] of shelf.entries()) {
      const isOver = (savedAtMs !== undefined && savedAtMs < oldest) || (expiresAtMs !== undefined && expiresAtMs <= nowMs);
      if (!ending.signal.aborted && isOver && (await shelf.remove(id))) removed += 1;
    }
    if (removed > 0) log.info({ media: removed, retentionDays: config.retentionDays }, 'Removed media past their retention');
  }

  function refuseFull(more: number): void {
    if (shelf.bytes + coming + more > config.maxTotalBytes)
      throw new AppError(
        'precondition_failed',
        `The media store is full: expected at most ${config.maxTotalBytes} bytes in all (media.maxTotalBytes); delete media first`,
      );
  }

  function refuseTooLarge(size: number): void {
    if (size > config.maxFileBytes)
      throw new AppError('payload_too_large', `The file must not be larger than ${config.maxFileBytes} bytes (media.maxFileBytes)`);
  }

  function refuseTooMany(owner: string): void {
    const retry = { retryAfterMs: 1_000 };
    if (uploads >= maxUploads) throw new AppError('rate_limited', `More than ${maxUploads} uploads at once`, retry);
    if ((uploadsOf.get(owner) ?? 0) >= maxUploadsPerPrincipal)
      throw new AppError('rate_limited', `More than ${maxUploadsPerPrincipal} uploads of this caller at once`, retry);
  }

  function countUpload(owner: string, change: 1 | -1): void {
    uploads += change;
    const left = (uploadsOf.get(owner) ?? 0) + change;
    if (left === 0) uploadsOf.delete(owner);
    else uploadsOf.set(owner, left);
  }

  async function save(upload: Upload, call: CallContext): Promise<MediaInfo> {
    await loaded;
    refuseTooLarge(upload.size ?? 0);
    refuseFull(upload.size ?? 0);
    if (shelf.count + uploads >= config.maxFiles)
      throw new AppError(
        'precondition_failed',
        `The media store is full: expected at most ${config.maxFiles} files (media.maxFiles); delete media first`,
      );
    const owner = call.identity.principalId;
    refuseTooMany(owner);
    countUpload(owner, 1);
    let size = 0;
    try {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      await using draft = await draftInside(dir);
      const hash = createHash('sha256');
      const inspector = createInspector();
      for await (const chunk of upload.body) {
        refuseTooLarge(size + chunk.length);
        refuseFull(chunk.length);
        size += chunk.length;
        coming += chunk.length;
        hash.update(chunk);
        inspector.add(chunk);
        await draft.write(chunk);
      }
      if (size === 0) throw new AppError('invalid_params', 'body: expected the bytes of a file, found none', { param: 'body' });
      const fileName = cleanFileName(upload.fileName);
      const { contentType, extension } = await inspector.decide(upload.contentType, fileName);
      const about = { contentType, savedAt: clock.now(), size, ...(fileName !== undefined && { fileName }) };
      const mediaId = `${newId('md')}.${extension}`;
      const { expiresAtMs } = upload;
      await keep(mediaId, draft, { ...about, owner, sha256: hash.digest('hex'), ...(expiresAtMs !== undefined && { expiresAt: expiresAtMs }) });
      shelf.put(mediaId, { owner, size, savedAtMs: about.savedAt, listedAtMs: about.savedAt, expiresAtMs });
      return { mediaId, ...about };
    } catch (error) {
      throw storageFault(error);
    } finally {
      countUpload(owner, -1);
      coming -= size;
    }
  }

  /** Writes the sidecar first: a file is a medium as soon as it has its name, and must have an owner by then. */
  async function keep(id: string, draft: Draft, sidecar: Sidecar): Promise<void> {
    try {
      await writeFileInside(dir, sidecarOf(id), JSON.stringify(sidecar), { maxBytes: 16 * 1024 });
      await draft.keep(id);
    } catch (error) {
      await removeInside(dir, sidecarOf(id)).catch(() => false);
      throw error;
    }
  }

  async function mayUse(id: string, call: CallContext): Promise<Sidecar> {
    if (!MediaId.safeParse(id).success) throw unknownMedium();
    const sidecar = await readSidecar(dir, id);
    if (!isAdmin(call) && sidecar.owner !== call.identity.principalId) throw unknownMedium();
    if (sidecar.expiresAt !== undefined && sidecar.expiresAt <= clock.now()) throw unknownMedium();
    return sidecar;
  }

  async function openFile(id: string): Promise<FileHandle> {
    try {
      return await openInside(dir, id);
    } catch (error) {
      throw error instanceof AppError && error.code === 'not_found' ? unknownMedium() : error;
    }
  }

  async function open(id: string, call: CallContext): Promise<OpenMedium> {
    const sidecar = await mayUse(id, call);
    const handle = await openFile(id);
    const { size, mtimeMs } = await handle.stat();
    return {
      info: infoOf(id, sidecar, { size, mtimeMs }),
      // The digest is valid only while the size matches the one it was computed with.
      etag:
        sidecar.sha256 !== undefined && sidecar.size === size
          ? `"${sidecar.sha256}"`
          : `W/"${size.toString(36)}-${Math.floor(mtimeMs).toString(36)}"`,
      stream: (start, end) => handle.createReadStream({ start, end, autoClose: false }),
      [Symbol.asyncDispose]: () => handle.close(),
    };
  }

  const api: MediaLibrary = {
    maxFileBytes: config.maxFileBytes,
    save,
    open,
    async find(id, call) {
      await using medium = await open(id, call);
      return medium.info;
    },
    async read(id) {
      if (!MediaId.safeParse(id).success) return undefined;
      try {
        return await readFileInside(dir, id, { maxBytes: config.maxFileBytes });
      } catch (error) {
        if (error instanceof AppError && error.code === 'not_found') return undefined;
        throw error;
      }
    },
    async list({ limit, offset }, call) {
      await loaded;
      const admin = isAdmin(call);
      const nowMs = clock.now();
      const mine = [...shelf.entries()].filter(
        ([, { owner, expiresAtMs = Infinity }]) => expiresAtMs > nowMs && (admin || owner === call.identity.principalId),
      );
      const page = mine.toSorted(([a, x], [b, y]) => y.listedAtMs - x.listedAtMs || (a < b ? 1 : -1)).slice(offset, offset + limit);
      const media = await Promise.all(
        page.map(async ([id, { size, listedAtMs }]) => infoOf(id, await readSidecar(dir, id), { size, mtimeMs: listedAtMs })),
      );
      return { media, total: mine.length };
    },
    async remove(id, call) {
      const { contentType, size } = await api.find(id, call);
      // Recorded before the file is deleted: a deletion without a record would be worse than a record of one that a crash prevented.
      await recordAudit(deps, call, { actionType: 'media.delete', classification: 'destructive', target: id, metadata: { contentType, size } });
      if (!(await shelf.remove(id))) throw unknownMedium();
    },
  };

  return {
    api,
    async [Symbol.asyncDispose]() {
      ending.abort();
      cancelSweep();
      await sweeping;
    },
  };
}

function infoOf(mediaId: string, sidecar: Sidecar, file: { readonly size: number; readonly mtimeMs: number }): MediaInfo {
  return {
    mediaId,
    contentType: sidecar.contentType ?? typeOfExtension(mediaId),
    size: file.size,
    ...(sidecar.fileName !== undefined && { fileName: sidecar.fileName }),
    savedAt: sidecar.savedAt ?? Math.floor(file.mtimeMs),
  };
}

/** A full disk is not a defect of this server, and may recover. */
function storageFault(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === 'EIO' || code === 'EROFS' || code === 'EFBIG')
    return new AppError('unavailable', 'The medium could not be stored: the disk is full or rejects writes', { cause: error });
  return error;
}
