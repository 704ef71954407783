import { readFileSync } from 'node:fs';

/** Distinguishes one process from a later one with the same number. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Ticks between the start of the machine and of the process; absent when the system does not report it. */
  readonly startTicks: number | undefined;
  /** Changes each time the machine starts; absent when the system does not report it. */
  readonly machineBoot: string | undefined;
}

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, startTicks: statOf(process.pid)?.startTicks, machineBoot: machineBoot() };
}

/** True when the very process that `identity` was taken from still runs. */
export function isAlive(identity: ProcessIdentity): boolean {
  if (identity.machineBoot !== undefined && identity.machineBoot !== machineBoot()) return false;
  if (!exists(identity.pid)) return false;
  const stat = statOf(identity.pid);
  if (stat?.ended === true) return false;
  return identity.startTicks === undefined || identity.startTicks === stat?.startTicks;
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Not permitted: it runs, under another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

function statOf(pid: number): { readonly startTicks: number | undefined; readonly ended: boolean } | undefined {
  const text = readOptional(`/proc/${pid}/stat`);
  if (text === undefined) return undefined;
  // The second field is the program's name in brackets and may itself hold spaces and brackets; the fields after it count from the third.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[19]);
  return {
    startTicks: Number.isSafeInteger(ticks) ? ticks : undefined,
    // A process that nobody reaps stays visible forever; while it has other threads, one may still be writing.
    ended: (fields[0] === 'Z' || fields[0] === 'X') && Number(fields[17]) <= 1,
  };
}

function machineBoot(): string | undefined {
  return readOptional('/proc/sys/kernel/random/boot_id')?.trim();
}

function readOptional(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
