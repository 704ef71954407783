import { existsSync, type StatsFs, statfsSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { AppError } from './app-error.ts';
import type { Clock } from './clock.ts';
import { StartError } from './lifecycle/start-error.ts';
import { repeat } from './timers.ts';

/** How much this user may still write on the disk of a folder. */
export interface FreeSpace {
  readonly bytes: number;
  /** Inodes, one for each new file or folder; absent where their number has no limit. */
  readonly inodes?: number;
}

/** Free space of the disks that the daemon writes to, checked periodically. */
export interface DiskWatch extends Disposable {
  /** Why new work that writes is refused; undefined while there is enough space. */
  shortage(): string | undefined;
  /** What is in short supply. */
  lacking(): 'space' | 'inodes' | undefined;
  /** @throws AppError `unavailable` while less than `storage.minFreeBytes` is free. */
  assertCanWrite(): void;
  /** Checks now, for callers that are about to write a lot. */
  check(): Promise<void>;
}

interface Shortage {
  readonly lacking: 'space' | 'inodes';
  readonly message: string;
}

export interface DiskWatchDeps {
  /** Folders of the installation; they may lie on different disks. */
  readonly folders: readonly string[];
  readonly minFreeBytes: number;
  readonly clock: Clock;
  /** Called when the state changes; undefined when there is enough space again. */
  readonly onChange: (shortage: string | undefined) => void;
  readonly freeSpace?: (folder: string) => Promise<FreeSpace>;
}

const checkMs = 10_000;
/** How long clients are asked to wait before they try again. */
const retryAfterMs = 30_000;
/** Free space below which no database can be created. */
const minDatabaseBytes = 65_536;
/** A start creates about a dozen files, and running work a few more. */
const minFreeInodes = 64;

export function createDiskWatch(deps: DiskWatchDeps): DiskWatch {
  const { folders, minFreeBytes, clock, onChange, freeSpace = freeSpaceOf } = deps;
  let shortage: Shortage | undefined;
  let disposed = false;
  const checks = repeat({
    clock,
    everyMs: checkMs,
    run: check,
    onError(error) {
      throw error;
    },
  });

  async function check(): Promise<void> {
    const found = minFreeBytes === 0 ? undefined : await firstShortage();
    if (disposed || found?.message === shortage?.message) return;
    const changed = found?.lacking !== shortage?.lacking;
    shortage = found;
    if (changed) onChange(shortage?.message);
  }

  async function firstShortage(): Promise<Shortage | undefined> {
    for (const folder of folders) {
      // A disk that does not report its free space fails when it is written to.
      const free = await freeSpace(folder).catch(() => ({ bytes: Number.POSITIVE_INFINITY }));
      const lacking = lackOf(free, minFreeBytes);
      if (lacking !== undefined) return { lacking, message: messageOf(lacking, folder, free) };
    }
    return undefined;
  }

  function messageOf(lacking: Shortage['lacking'], folder: string, { bytes, inodes }: FreeSpace): string {
    if (lacking === 'inodes')
      return `The disk of ${folder} has nearly no inodes left: ${inodes} more files can be created. Nothing new is stored until files are deleted`;
    return `The disk of ${folder} is nearly full: ${inMegabytes(bytes)} MB are free, and storage.minFreeBytes asks for ${inMegabytes(minFreeBytes)} MB. Nothing new is stored until space is freed`;
  }

  return {
    shortage: () => shortage?.message,
    lacking: () => shortage?.lacking,
    assertCanWrite() {
      if (shortage !== undefined) throw new AppError('unavailable', shortage.message, { retryAfterMs });
    },
    check,
    [Symbol.dispose]() {
      disposed = true;
      void checks[Symbol.asyncDispose]();
    },
  };
}

export async function freeSpaceOf(folder: string): Promise<FreeSpace> {
  return spaceOf(await statfs(folder));
}

function spaceOf({ bavail, bsize, files, ffree }: StatsFs): FreeSpace {
  // Some file systems have no fixed number of files and report zero.
  return { bytes: bavail * bsize, ...(files > 0 && { inodes: ffree }) };
}

/** What is in short supply, by the least number of bytes. */
export function lackOf({ bytes, inodes }: FreeSpace, minBytes = minDatabaseBytes): 'space' | 'inodes' | undefined {
  if (bytes < minBytes) return 'space';
  return inodes !== undefined && inodes < minFreeInodes ? 'inodes' : undefined;
}

function inMegabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0);
}

/** True when too little is left to create anything. */
export function isFolderFull(folder: string): boolean {
  return lackIn(folder) !== undefined;
}

function lackIn(folder: string): 'space' | 'inodes' | undefined {
  let there = folder;
  while (!existsSync(there) && dirname(there) !== there) there = dirname(there);
  try {
    return lackOf(spaceOf(statfsSync(there)));
  } catch {
    return undefined;
  }
}

/** The refusal of a start on a full disk. */
export function diskFullError(folder: string, cause: unknown): StartError {
  const message =
    lackIn(folder) === 'inodes'
      ? `The disk of ${folder} has no inodes left for new files (see: df -i): delete files there, then start again.`
      : `The disk of ${folder} is full: free some space, then start again.`;
  return new StartError('disk_full', message, { cause });
}
