import { readdir } from 'node:fs/promises';
import { MediaId } from '@gatehouse/contract';
import { isDraft, removeInside, statInside } from '../../../kernel/safe-path.ts';
import { readSidecar, sidecarOf } from './sidecar.ts';

/** What is remembered of each media file, so that lists and the quota do not touch the disk. */
export interface Shelved {
  /** Undefined: put there by hand. */
  readonly owner: string | undefined;
  readonly size: number;
  /** Undefined: put there by hand, and not deleted by the daemon. */
  readonly savedAtMs: number | undefined;
  readonly listedAtMs: number;
  /** Undefined: kept for as long as all others. */
  readonly expiresAtMs?: number | undefined;
  /** Searched with the id and the content type; undefined when the sidecar does not say. */
  readonly fileName?: string | undefined;
  readonly contentType?: string | undefined;
}

export interface Shelf {
  readonly bytes: number;
  readonly count: number;
  has(id: string): boolean;
  put(id: string, item: Shelved): void;
  /** Deletes file and sidecar; the file first, so that a crash in between leaves nothing readable. */
  remove(id: string): Promise<boolean>;
  entries(): IterableIterator<[string, Shelved]>;
  /** Syncs with the folder, which people may change too, and removes uploads that a crash interrupted before `beforeMs`. Stops when `signal` aborts. */
  refresh(beforeMs: number, signal: AbortSignal): Promise<void>;
}

/** The media folder in memory, limited to `media.maxFiles` entries. */
export function createShelf(dir: string): Shelf {
  const items = new Map<string, Shelved>();
  let bytes = 0;

  function put(id: string, item: Shelved): void {
    forget(id);
    items.set(id, item);
    bytes += item.size;
  }

  function forget(id: string): void {
    bytes -= items.get(id)?.size ?? 0;
    items.delete(id);
  }

  async function refresh(beforeMs: number, signal: AbortSignal): Promise<void> {
    const names = new Set<string>();
    for (const entry of await readdir(dir, { withFileTypes: true })) if (entry.isFile()) names.add(entry.name);
    for (const id of items.keys()) if (!names.has(id) && (await statInside(dir, id)) === undefined) forget(id);
    for (const name of names) {
      if (signal.aborted) return;
      if (isDraft(name) || (name.endsWith('.meta') && !names.has(name.slice(0, -'.meta'.length)))) {
        const stat = await statInside(dir, name);
        if (stat !== undefined && stat.mtimeMs < beforeMs) await removeInside(dir, name);
      } else if (!items.has(name) && MediaId.safeParse(name).success) {
        const { owner, size, savedAt, expiresAt: expiresAtMs, fileName, contentType } = await readSidecar(dir, name);
        // A complete sidecar saves a second stat: at start there may be very many.
        const stat = size !== undefined && savedAt !== undefined ? { size, mtimeMs: savedAt } : await statInside(dir, name);
        if (stat !== undefined)
          put(name, {
            owner,
            size: stat.size,
            savedAtMs: savedAt,
            listedAtMs: savedAt ?? Math.floor(stat.mtimeMs),
            expiresAtMs,
            fileName,
            contentType,
          });
      }
    }
  }

  return {
    get bytes() {
      return bytes;
    },
    get count() {
      return items.size;
    },
    has: (id) => items.has(id),
    put,
    async remove(id) {
      const removed = await removeInside(dir, id);
      await removeInside(dir, sidecarOf(id));
      forget(id);
      return removed;
    },
    entries: () => items.entries(),
    refresh,
  };
}
