import { statfsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { AppError } from './app-error.ts';
import type { Clock } from './clock.ts';
import { StartError } from './lifecycle/start-error.ts';

/** Free space of the disks that the daemon writes to, looked at now and then. */
export interface DiskWatch extends Disposable {
  /** Why no new work that writes is taken; undefined while there is room. */
  shortage(): string | undefined;
  /** @throws AppError `unavailable` while there is less room than `storage.minFreeBytes`. */
  assertRoomToWrite(): void;
  /** Looks now, for callers that are about to write much. */
  look(): Promise<void>;
}

export interface DiskWatchDeps {
  /** Folders of the installation; they may lie on different disks. */
  readonly folders: readonly string[];
  readonly minFreeBytes: number;
  readonly clock: Clock;
  /** Called when the state changes; undefined: there is room again. */
  readonly onChange: (shortage: string | undefined) => void;
  /** Bytes that this user may still write in a folder. */
  readonly freeBytes?: (folder: string) => Promise<number>;
}

const lookMs = 10_000;
/** How long clients are asked to wait before they try again. */
const retryAfterMs = 30_000;
/** With less than this, no database can be created. */
const noRoomBytes = 65_536;

export function createDiskWatch(deps: DiskWatchDeps): DiskWatch {
  const { folders, minFreeBytes, clock, onChange, freeBytes = freeBytesOf } = deps;
  let shortage: string | undefined;
  let disposed = false;
  let cancel = clock.after(lookMs, again);

  function again(): void {
    void look().then(() => {
      if (!disposed) cancel = clock.after(lookMs, again);
    });
  }

  async function look(): Promise<void> {
    const found = minFreeBytes === 0 ? undefined : await firstShortage();
    if (disposed || found === shortage) return;
    const changed = (found === undefined) !== (shortage === undefined);
    shortage = found;
    if (changed) onChange(shortage);
  }

  async function firstShortage(): Promise<string | undefined> {
    for (const folder of folders) {
      // A disk that does not tell how full it is shows it when it is written to.
      const free = await freeBytes(folder).catch(() => Number.POSITIVE_INFINITY);
      if (free < minFreeBytes)
        return `The disk of ${folder} is nearly full: ${inMegabytes(free)} MB are free, and storage.minFreeBytes asks for ${inMegabytes(minFreeBytes)} MB. Nothing new is stored until space is freed`;
    }
    return undefined;
  }

  return {
    shortage: () => shortage,
    assertRoomToWrite() {
      if (shortage !== undefined) throw new AppError('unavailable', shortage, { retryAfterMs });
    },
    look,
    [Symbol.dispose]() {
      disposed = true;
      cancel();
    },
  };
}

/** Bytes that this user may still write in a folder. */
export async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}

function inMegabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0);
}

/** True when so little is left that nothing can be created. */
export function hasNoRoom(folder: string): boolean {
  try {
    const { bavail, bsize, ffree, files } = statfsSync(folder);
    // Some file systems have no fixed number of files, and say zero.
    return bavail * bsize < noRoomBytes || (files > 0 && ffree === 0);
  } catch {
    return false;
  }
}

/** The refusal of a start on a full disk. */
export function diskFullError(folder: string, cause: unknown): StartError {
  return new StartError('disk_full', `The disk of ${folder} is full: free some space, then start again.`, { cause });
}
