import { readFileSync } from 'node:fs';

/** Tells one process from a later one that was given the same number. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Ticks between the start of the machine and of the process; absent where the system does not tell. */
  readonly startTicks: number | undefined;
  /** Changes each time the machine starts; absent where the system does not tell. */
  readonly machineBoot: string | undefined;
}

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, startTicks: startTicks(process.pid), machineBoot: machineBoot() };
}

/** True when the very process that `identity` was taken from still runs. */
export function isAlive(identity: ProcessIdentity): boolean {
  if (identity.machineBoot !== undefined && identity.machineBoot !== machineBoot()) return false;
  if (!exists(identity.pid)) return false;
  return identity.startTicks === undefined || identity.startTicks === startTicks(identity.pid);
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

function startTicks(pid: number): number | undefined {
  const text = readOptional(`/proc/${pid}/stat`);
  if (text === undefined) return undefined;
  // The second field is the program's name in brackets and may itself hold spaces and brackets; the start is the 22nd.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[19]);
  return Number.isSafeInteger(ticks) ? ticks : undefined;
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
