import { join } from 'node:path';

/** Marks files of this program in their header ("GtHs"), so that a foreign database is never migrated. */
export const applicationId = 0x47744873;

export const mainFileName = 'gatehouse.db';
export const telemetryFileName = 'telemetry.db';

export type DatabaseFileName = typeof mainFileName | typeof telemetryFileName;

export function databaseFile(dataDir: string, name: DatabaseFileName = mainFileName): string {
  return join(dataDir, name);
}

/** Files that SQLite keeps next to a database file; they are moved together with it. */
export const sidecars = ['-wal', '-shm', '-journal'] as const;

/** Name of a verified backup until it replaces the database. */
export function restoringFile(dataDir: string): string {
  return `${databaseFile(dataDir)}.restoring`;
}
