import { readFileSync } from 'node:fs';

/** Descriptors for the database, logs, programs, modules loaded on demand, and temporary files. */
const reserved = 112;
const leastConnections = 16;

/** Returns how many files and sockets this process may open; undefined when the system does not report a limit or has none. */
export function descriptorLimit(): number | undefined {
  let limits: string;
  try {
    limits = readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return undefined;
  }
  const soft = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1]);
  return Number.isSafeInteger(soft) ? soft : undefined;
}

/** Returns a connection limit that leaves descriptors for everything else: each may need a second socket, to a provider, and a file. */
export function connectionsWithin(wanted: number, limit: number | undefined): number {
  if (limit === undefined) return wanted;
  return Math.min(wanted, Math.max(leastConnections, Math.floor((limit - reserved) / 2)));
}

export function isOutOfDescriptors(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'EMFILE' || error.code === 'ENFILE');
}
