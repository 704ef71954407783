import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { isAlive, ownIdentity, type ProcessIdentity } from './process-identity.ts';
import { StartError } from './start-error.ts';

export interface LockFile {
  release(): void;
}

/**
 * Takes the lock of a data folder. It holds who took it (pid, start time of the process, boot of the machine), so a lock
 * left by a killed daemon is seen as stale even when its pid is in use again.
 * @throws StartError `locked`, naming the pid, while another process holds it.
 */
export function acquireLock(dataDir: string): LockFile {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const file = join(dataDir, 'daemon.lock');
  const own = JSON.stringify(ownIdentity());
  const candidate = `${file}.${randomUUID()}`;
  writeFileSync(candidate, own, { mode: 0o600 });
  try {
    // A link appears whole or not at all, so nobody reads a half-written lock.
    while (!tryLink(candidate, file)) {
      const text = readOptional(file);
      if (text === undefined) continue;
      const holder = parseIdentity(text);
      if (holder !== undefined && isAlive(holder))
        throw new StartError('locked', `Another daemon (pid ${holder.pid}) uses ${dataDir}: stop it first, or choose another home folder.`);
      removeStale(file, text);
    }
  } finally {
    rmSync(candidate, { force: true });
  }
  return {
    release() {
      if (readOptional(file) === own) rmSync(file, { force: true });
    },
  };
}

/** Two starters may judge the same stale lock; the slower one must not remove the lock that the faster one has taken. */
function removeStale(file: string, judged: string): void {
  const removed = `${file}.${randomUUID()}`;
  try {
    renameSync(file, removed);
  } catch (error) {
    if (isCode(error, 'ENOENT')) return;
    throw error;
  }
  if (readFileSync(removed, 'utf8') !== judged) tryLink(removed, file);
  rmSync(removed, { force: true });
}

function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (isCode(error, 'EEXIST')) return false;
    throw error;
  }
}

function readOptional(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** Undefined for what no daemon of ours wrote; such a lock counts as stale. */
function parseIdentity(text: string): ProcessIdentity | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || !('pid' in value) || typeof value.pid !== 'number') return undefined;
    return {
      pid: value.pid,
      startTicks: 'startTicks' in value && typeof value.startTicks === 'number' ? value.startTicks : undefined,
      machineBoot: 'machineBoot' in value && typeof value.machineBoot === 'string' ? value.machineBoot : undefined,
    };
  } catch {
    return undefined;
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** Pid of the daemon that holds the lock now; undefined when none does. Changes nothing. */
export function lockHolder(dataDir: string): number | undefined {
  const text = readOptional(join(dataDir, 'daemon.lock'));
  const holder = text === undefined ? undefined : parseIdentity(text);
  return holder !== undefined && isAlive(holder) ? holder.pid : undefined;
}
