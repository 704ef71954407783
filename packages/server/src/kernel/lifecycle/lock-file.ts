import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isDiskFull } from '../disk-full.ts';
import { diskFullError, isFolderFull } from '../disk-space.ts';
import { lockFileOf } from './lock-name.ts';
import { isAlive, ownIdentity, type ProcessIdentity } from './process-identity.ts';
import { StartError } from './start-error.ts';

/** The content of `daemon.lock` about the process that holds the lock. It informs people and commands; the lock itself is on `lock.db`. */
export interface LockHolder extends ProcessIdentity {
  /** Host name as the holder sees it: inside of a container, the container's. */
  readonly host: string | undefined;
  /** Address of the listener, once it listens. */
  readonly address: string | undefined;
}

export interface HomeLock {
  /** Adds the address of the listener to `daemon.lock`. */
  announce(address: string): void;
  release(): void;
}

/** Long enough to outlast a check by `lockHolder` of another process. */
const acquireTimeoutMs = 200;
const sqliteBusy = 5;
/** An unreferenced connection is garbage-collected, and the lock with it. */
const held = new Set<DatabaseSync>();

/**
 * Locks a data folder for the life of the process: an exclusive SQLite transaction on `lock.db`, which the operating system
 * enforces between all processes of the machine, whatever container or pid namespace they run in, and frees when the
 * process ends. Nothing is written to `lock.db`. It must not be opened other than through SQLite: closing any other
 * descriptor of the file would free the lock (POSIX).
 * @throws StartError `locked`, naming the holder as far as known, while another process holds it.
 */
export function acquireLock(dataDir: string): HomeLock {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const db = openLock(dataDir, acquireTimeoutMs);
  try {
    lockOrRefuse(db, dataDir);
    // A living process in daemon.lock, although the lock was free: lock.db was deleted under it, or it is a daemon older than lock.db.
    const holder = readHolder(dataDir);
    if (holder?.startTicks !== undefined && isAlive(holder)) throw lockedBy(holder, dataDir);
    writeHolder(dataDir, { ...ownIdentity(), host: hostname(), address: undefined });
  } catch (error) {
    db.close();
    throw error;
  }
  held.add(db);
  return {
    announce: (address) => writeHolder(dataDir, { ...ownIdentity(), host: hostname(), address }),
    release() {
      if (!held.delete(db)) return;
      rmSync(holderFile(dataDir), { force: true });
      db.close();
    },
  };
}

/** Returns the current holder of the lock; undefined when it is free. Changes nothing. */
export function lockHolder(dataDir: string): Partial<LockHolder> | undefined {
  const holder = readHolder(dataDir);
  if (!existsSync(lockFileOf(dataDir))) return holder !== undefined && isAlive(holder) ? holder : undefined;
  const db = openLock(dataDir, 0);
  try {
    // A shared lock, so that a daemon that starts at this moment only waits for it.
    db.exec('BEGIN; SELECT 1 FROM sqlite_schema; COMMIT');
    return undefined;
  } catch (error) {
    if (isBusy(error)) return holder ?? {};
    throw unusableLock(dataDir, error);
  } finally {
    db.close();
  }
}

function lockOrRefuse(db: DatabaseSync, dataDir: string): void {
  try {
    db.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    throw isBusy(error) ? lockedBy(readHolder(dataDir), dataDir) : unusableLock(dataDir, error);
  }
}

function openLock(dataDir: string, timeout: number): DatabaseSync {
  try {
    return new DatabaseSync(lockFileOf(dataDir), { timeout });
  } catch (error) {
    throw unusableLock(dataDir, error);
  }
}

function unusableLock(dataDir: string, error: unknown): StartError {
  // SQLite does not say why a file cannot be created.
  if (isFolderFull(dataDir)) return diskFullError(dataDir, error);
  const said = error instanceof Error ? error.message : String(error);
  return new StartError(
    'unusable',
    `Cannot lock ${lockFileOf(dataDir)} (${said}). The home folder needs a file system with working locks that this user can write to; many network file systems have none.`,
    { cause: error },
  );
}

function lockedBy(holder: LockHolder | undefined, dataDir: string): StartError {
  const named =
    holder === undefined
      ? ''
      : ` (${[`pid ${holder.pid}`, ...(holder.host === undefined ? [] : [`on host ${holder.host}`]), ...(holder.address === undefined ? [] : [`at ${holder.address}`])].join(' ')})`;
  return new StartError('locked', `Another daemon${named} uses ${dataDir}: stop it first, or choose another home folder.`);
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number' && (error.errcode & 0xff) === sqliteBusy;
}

function holderFile(dataDir: string): string {
  return join(dataDir, 'daemon.lock');
}

/** Replaces the file as a whole, so that nobody reads half of it. */
function writeHolder(dataDir: string, holder: LockHolder): void {
  const draft = `${holderFile(dataDir)}.${randomUUID()}`;
  try {
    writeFileSync(draft, JSON.stringify(holder), { mode: 0o600 });
    renameSync(draft, holderFile(dataDir));
  } catch (error) {
    rmSync(draft, { force: true });
    throw isDiskFull(error) ? diskFullError(dataDir, error) : error;
  }
}

/** Returns undefined when no daemon left a readable one. */
function readHolder(dataDir: string): LockHolder | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(holderFile(dataDir), 'utf8'));
    if (typeof value !== 'object' || value === null || !('pid' in value) || typeof value.pid !== 'number') return undefined;
    const text = (name: string): string | undefined => {
      const found: unknown = Object.getOwnPropertyDescriptor(value, name)?.value;
      return typeof found === 'string' ? found : undefined;
    };
    return {
      pid: value.pid,
      startTicks: 'startTicks' in value && typeof value.startTicks === 'number' ? value.startTicks : undefined,
      machineBoot: text('machineBoot'),
      host: text('host'),
      address: text('address'),
    };
  } catch {
    return undefined;
  }
}
