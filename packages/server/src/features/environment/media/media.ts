import { mkdir } from 'node:fs/promises';
import { recordAudit } from '../../../kernel/audit.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { Log } from '../../../kernel/log.ts';
import { repeat } from '../../../kernel/timers.ts';
import type { MediaLibrary } from './api.ts';
import type { Live } from '../../../kernel/config/live.ts';
import type { MediaConfig } from './config.ts';
import { createShelf } from './media-index.ts';
import { listMedia, openMediaFile, readMediaFile, unknownMediaFile } from './read.ts';
import { saveMediaFile } from './save.ts';
import { Uploads } from './uploads.ts';

export interface MediaDeps {
  /** Created (0700) when it is missing. */
  readonly dir: string;
  readonly config: Live<MediaConfig>;
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  /** Returns the ids of media that messages have attached, from a message on, and where to continue; undefined at the end. */
  readonly attached: (afterId: number) => Promise<AttachedMedia>;
}

/** A page of messages with attachments. */
export interface AttachedMedia {
  readonly mediaIds: readonly string[];
  readonly nextId: number | undefined;
}

export interface Media extends AsyncDisposable {
  readonly api: MediaLibrary;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** Longer than accepted work waits. */
const waitDays = 7;

/** Files that clients uploaded, each with a sidecar, in one folder (http-gateway.md §4.7). */
export async function createMedia(deps: MediaDeps): Promise<Media> {
  const { dir, config, clock, log } = deps;
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const shelf = createShelf(dir);
  const uploads = new Uploads(config, shelf);
  const reading = {
    dir,
    clock,
    shelf,
    get maxFileBytes() {
      return config.current.maxFileBytes;
    },
  };
  const ending = new AbortController();
  /** When callers last found media: what they attach them to may wait before it is stored. Bounded by the number of media. */
  const foundAtMs = new Map<string, number>();
  /** Not awaited at start: reading works without it. */
  const loaded = Promise.withResolvers<void>();
  const sweeping = repeat({
    clock,
    everyMs: hourMs,
    firstMs: 0,
    run: () => sweep().finally(loaded.resolve),
    onError: (error) => log.warn({ err: error }, 'Failed to scan the media folder'),
  });

  /** Syncs with the folder and removes media past their retention. */
  async function sweep(): Promise<void> {
    await shelf.refresh(clock.ageNow() - hourMs, ending.signal);
    await removeExpired();
  }

  async function removeExpired(): Promise<void> {
    const nowMs = clock.ageNow();
    const { retentionDays, unattachedDays } = config.current;
    const oldest = retentionDays === undefined ? Number.NEGATIVE_INFINITY : nowMs - retentionDays * dayMs;
    const over: string[] = [];
    const maybeUnattached = new Set<string>();
    for (const [id, { savedAtMs = Number.POSITIVE_INFINITY, expiresAtMs }] of shelf.entries()) {
      if (savedAtMs < oldest || (expiresAtMs !== undefined && expiresAtMs <= nowMs)) over.push(id);
      else if (savedAtMs < nowMs - unattachedDays * dayMs) maybeUnattached.add(id);
    }
    for (const [id, atMs] of foundAtMs) if (atMs < nowMs - waitDays * dayMs || !shelf.has(id)) foundAtMs.delete(id);
    for (let afterId: number | undefined = 0; afterId !== undefined && maybeUnattached.size > 0 && !ending.signal.aborted;) {
      const page: AttachedMedia = await deps.attached(afterId);
      for (const id of page.mediaIds) maybeUnattached.delete(id);
      afterId = page.nextId;
    }
    let removed = 0;
    for (const id of [...over, ...maybeUnattached]) {
      if (ending.signal.aborted) break;
      if (maybeUnattached.has(id) && foundAtMs.has(id)) continue;
      if (await shelf.remove(id)) removed += 1;
    }
    if (removed > 0) log.info({ media: removed, retentionDays, unattachedDays }, 'Removed media past their retention');
  }

  const api: MediaLibrary = {
    get maxFileBytes() {
      return config.current.maxFileBytes;
    },
    async save(upload, call) {
      await loaded.promise;
      return saveMediaFile({ dir, clock, shelf, uploads }, upload, call.identity.principalId);
    },
    open: (id, call) => openMediaFile(reading, id, call),
    async find(id, call) {
      await using mediaFile = await openMediaFile(reading, id, call);
      foundAtMs.set(id, clock.ageNow());
      return mediaFile.info;
    },
    read: (id) => readMediaFile(reading, id),
    async list(page, call) {
      await loaded.promise;
      return listMedia(reading, page, call);
    },
    async remove(id, call) {
      const { contentType, size } = await api.find(id, call);
      // Recorded before the file is deleted: a deletion without a record would be worse than a record of one that a crash prevented.
      await recordAudit(deps, call, { actionType: 'media.delete', classification: 'destructive', target: id, metadata: { contentType, size } });
      if (!(await shelf.remove(id))) throw unknownMediaFile();
    },
  };

  return {
    api,
    async [Symbol.asyncDispose]() {
      ending.abort();
      await sweeping[Symbol.asyncDispose]();
    },
  };
}
