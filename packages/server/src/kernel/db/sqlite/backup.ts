import { closeSync, mkdirSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { damaged, explainOpening, openReader } from './connection.ts';
import { sidecars } from './database-files.ts';
import { syncPath } from './sync-path.ts';

const pagesPerStep = 100;

/**
 * Copies a database that is in use. The copy is one plain file (without a WAL), equal to one committed state,
 * checked, synced and only then renamed to `targetFile`.
 */
export async function backupDatabase(
  sourceFile: string,
  targetFile: string,
  onProgress?: (done: number, total: number) => void,
): Promise<{ readonly bytes: number }> {
  const source = openReader(sourceFile);
  try {
    // An open snapshot freezes the state. Without it SQLite restarts the copy at each commit of another connection, and
    // under load it would never finish.
    source.exec('BEGIN');
    source.prepare('SELECT count(*) FROM sqlite_schema').get();
    return await copyDatabase(source, targetFile, onProgress);
  } finally {
    source.close();
  }
}

/** Like `backupDatabase`, for a connection whose state does not change during the copy. */
export async function copyDatabase(
  source: DatabaseSync,
  targetFile: string,
  onProgress?: (done: number, total: number) => void,
): Promise<{ readonly bytes: number }> {
  mkdirSync(dirname(targetFile), { recursive: true, mode: 0o700 });
  const partial = `${targetFile}.partial`;
  removeDatabase(partial);
  try {
    // Created before SQLite opens it, so that no other user can read it even briefly.
    closeSync(openSync(partial, 'wx', 0o600));
    await backup(source, partial, {
      rate: pagesPerStep,
      progress: ({ totalPages, remainingPages }) => onProgress?.(totalPages - remainingPages, totalPages),
    });
    const copy = new DatabaseSync(partial);
    try {
      copy.exec('PRAGMA journal_mode = DELETE');
      checkIntegrity(copy, partial, 'integrity_check');
    } finally {
      copy.close();
    }
    syncPath(partial);
    const { size } = statSync(partial);
    renameSync(partial, targetFile);
    syncPath(dirname(targetFile));
    return { bytes: size };
  } catch (error) {
    removeDatabase(partial);
    throw error;
  }
}

/** @throws StartError `damaged` with the first finding. */
export function checkIntegrity(db: DatabaseSync, file: string, pragma: 'integrity_check' | 'quick_check'): void {
  try {
    const first = db.prepare(`PRAGMA ${pragma}(1)`).get()?.[pragma];
    if (first !== 'ok') throw damaged(file, String(first));
  } catch (error) {
    throw explainOpening(file, error);
  }
}

function removeDatabase(file: string): void {
  for (const suffix of ['', ...sidecars]) rmSync(file + suffix, { force: true });
}
