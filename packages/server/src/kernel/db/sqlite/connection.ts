import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { isDiskFull } from '../../disk-full.ts';
import { diskFullError, isFolderFull } from '../../disk-space.ts';
import { StartError } from '../../lifecycle/start-error.ts';
import { isDamage, isMediumFailure } from './sqlite-errors.ts';

/** A single writer never waits for a lock: reaching this limit is a bug. */
const busyTimeoutMs = 5_000;

/** Opens the only writing connection of a file. `sync` says whether a commit waits for the disk (reliability §4.6). */
export function openWriter(file: string, sync: 'FULL' | 'NORMAL'): DatabaseSync {
  return opening(file, () => {
    const db = new DatabaseSync(file, { timeout: busyTimeoutMs, defensive: true });
    // Takes effect in an empty file only, and only before the first page is written.
    db.exec('PRAGMA auto_vacuum = INCREMENTAL');
    db.exec('PRAGMA journal_mode = WAL');
    db.exec(`PRAGMA synchronous = ${sync}`);
    db.exec('PRAGMA foreign_keys = ON; PRAGMA wal_autocheckpoint = 1000; PRAGMA journal_size_limit = 67108864');
    setCommon(db);
    return db;
  });
}

/** Opens a connection that cannot write; the writer of the same file is already open. */
export function openReader(file: string): DatabaseSync {
  return opening(file, () => {
    const db = new DatabaseSync(file, { timeout: busyTimeoutMs, defensive: true, readOnly: true });
    setCommon(db);
    return db;
  });
}

function setCommon(db: DatabaseSync): void {
  db.exec('PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY');
}

function opening(file: string, open: () => DatabaseSync): DatabaseSync {
  try {
    return open();
  } catch (error) {
    throw explainOpening(file, error);
  }
}

/** Explains for the terminal what went wrong while a file was opened or first read. */
export function explainOpening(file: string, error: unknown): unknown {
  if (error instanceof StartError || !(error instanceof Error)) return error;
  if (isDamage(error)) return damaged(file, error.message);
  // A full disk appears as many codes: the sidecar files cannot be created, or their shared memory cannot grow.
  if (isDiskFull(error) || (isMediumFailure(error) && isFolderFull(dirname(file)))) return diskFullError(dirname(file), error);
  if (!('errcode' in error)) return error;
  return new StartError(
    'unusable',
    `Cannot open the database ${file}: ${error.message}. Check that the folder exists, is writable and has free space.`,
    { cause: error },
  );
}

export function damaged(file: string, finding: string): StartError {
  return new StartError(
    'damaged',
    `The database ${file} is damaged (${finding}). Stop the daemon and replace it by a backup with "gatehouse restore <backup file>"; the damaged files are kept next to it.`,
  );
}

/** The single value of a pragma that answers with one integer. */
export function integerPragma(db: DatabaseSync, name: string): number {
  const row = db.prepare(`PRAGMA ${name}`).get();
  const value = row === undefined ? undefined : Object.values(row)[0];
  return typeof value === 'number' ? value : 0;
}
