import { join } from 'node:path';

/** Marks files of this program in their header ("GtHs"), so that a foreign database is never migrated. */
export const applicationId = 0x47744873;

export const mainFileName = 'gatehouse.db';
export const telemetryFileName = 'telemetry.db';

export type DatabaseFileName = typeof mainFileName | typeof telemetryFileName;

export function databaseFile(dataDir: string, name: DatabaseFileName = mainFileName): string {
  return join(dataDir, name);
}

/** What SQLite keeps beside a file; a file and these move together. */
export const sidecars = ['-wal', '-shm', '-journal'] as const;

/** A verified backup waits under this name until it takes the place of the database. */
export function restoringFile(dataDir: string): string {
  return `${databaseFile(dataDir)}.restoring`;
}
