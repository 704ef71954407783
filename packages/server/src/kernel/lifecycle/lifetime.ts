import { randomUUID } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../clock.ts';
import { isDiskFull } from '../disk-full.ts';
import { readHomeId } from './home-id.ts';
import { acquireLock, type HomeLock } from './lock-file.ts';

/** One run of the daemon over a data folder. Disposing of it records a clean shutdown and releases the lock: the last step of a stop. */
export interface Lifetime extends Disposable {
  readonly lock: HomeLock;
  readonly bootId: string;
  /** Identifies the folder, over all its runs. */
  readonly homeId: string;
  /** A fault of the previous run that this start should report to the owner. */
  readonly earlierFault: string | undefined;
  /** An earlier run had a database here. */
  readonly hadData: boolean;
  /** Records a fault of this run for the next start. */
  noteFault(text: string): void;
  /** The previous run ended without `[Symbol.dispose]`: killed, crashed or power loss. */
  readonly uncleanEnd: boolean;
  /** Three consecutive runs ended uncleanly within five minutes: start without agents, so that the owner can investigate. */
  readonly controlPlaneOnly: boolean;
}

interface Boot {
  readonly bootId: string;
  readonly pid: number;
  readonly startedAtMs: number;
  readonly endedAtMs: number | null;
  readonly fault?: string;
}

const crashLoopBoots = 3;
const crashLoopWindowMs = 5 * 60_000;
const keptBoots = 10;

/**
 * Locks the folder and records the boot. The record is a small separate file and not a table: a database that makes
 * the daemon crash is one of the things the crash-loop breaker is for.
 * @throws StartError `locked` while another daemon runs.
 */
export function beginLifetime(dataDir: string, clock: Clock): Lifetime {
  const lock = acquireLock(dataDir);
  try {
    const file = join(dataDir, 'boots.json');
    const earlier = readBoots(file);
    const now = clock.now();
    let boot: Boot = { bootId: randomUUID(), pid: process.pid, startedAtMs: now, endedAtMs: null };
    const lastClean = earlier.findLastIndex((past) => past.endedAtMs !== null);
    // When the clock was set to the past, old crashes lie in the future and must not count as recent.
    const recent = earlier.slice(lastClean + 1).filter((past) => past.startedAtMs <= now && now - past.startedAtMs <= crashLoopWindowMs);
    writeBoots(file, [...earlier, boot]);
    return {
      lock,
      bootId: boot.bootId,
      homeId: readHomeId(dataDir),
      earlierFault: earlier.at(-1)?.fault,
      hadData: earlier.some((past) => past.endedAtMs !== null || past.fault !== undefined),
      noteFault(fault) {
        boot = { ...boot, fault };
        writeBoots(file, [...earlier, boot]);
      },
      uncleanEnd: earlier.at(-1)?.endedAtMs === null,
      controlPlaneOnly: recent.length >= crashLoopBoots,
      [Symbol.dispose]() {
        try {
          writeBoots(file, [...earlier, { ...boot, endedAtMs: clock.now() }]);
        } catch (error) {
          // The next start sees an unclean shutdown, which only costs a check.
          if (!isDiskFull(error)) throw error;
        } finally {
          lock.release();
        }
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

function writeBoots(file: string, boots: readonly Boot[]): void {
  const next = `${file}.next`;
  writeFileSync(next, JSON.stringify(boots.slice(-keptBoots)), { mode: 0o600 });
  renameSync(next, file);
}

/** An unreadable record says nothing about crashes, and must not stop the start. */
function readBoots(file: string): Boot[] {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return Array.isArray(value) ? value.filter(isBoot) : [];
  } catch {
    return [];
  }
}

function isBoot(value: unknown): value is Boot {
  return (
    typeof value === 'object' &&
    value !== null &&
    'bootId' in value &&
    typeof value.bootId === 'string' &&
    'pid' in value &&
    typeof value.pid === 'number' &&
    'startedAtMs' in value &&
    typeof value.startedAtMs === 'number' &&
    'endedAtMs' in value &&
    (value.endedAtMs === null || typeof value.endedAtMs === 'number') &&
    (!('fault' in value) || typeof value.fault === 'string')
  );
}
