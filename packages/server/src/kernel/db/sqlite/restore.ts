import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { AppError } from '../../app-error.ts';
import { acquireLock } from '../../lifecycle/lock-file.ts';
import { StartError } from '../../lifecycle/start-error.ts';
import type { Migration } from '../operation.ts';
import { checkIntegrity } from './backup.ts';
import { explainOpening } from './connection.ts';
import { restoringFile } from './database-files.ts';
import { finishRestore } from './finish-restore.ts';
import { planMigrations } from './migrate.ts';
import { splitMigrations } from './open-files.ts';
import { syncPath } from './sync-path.ts';

export interface RestoreOptions {
  readonly backupFile: string;
  readonly dataDir: string;
  /** Migrations that this program knows, so that a backup of a newer one is refused before anything is moved. */
  readonly migrations: readonly Migration[];
  readonly programVersion?: string;
}

/**
 * Replaces the database of a stopped daemon by a backup. The old files stay next to it; their name is returned.
 * @throws StartError when a daemon runs in `dataDir`, or the backup is damaged, foreign or newer than the program.
 */
export function restoreBackup(options: RestoreOptions): { readonly replaced: string | undefined } {
  if (!existsSync(options.backupFile)) throw new AppError('not_found', `There is no backup file ${options.backupFile}`);
  const lock = acquireLock(options.dataDir);
  try {
    // Checks the copy that will be used, not a file that may still change.
    const partial = `${restoringFile(options.dataDir)}.partial`;
    rmSync(partial, { force: true });
    try {
      copyFileSync(options.backupFile, partial);
      verify(partial, options);
      syncPath(partial);
      renameSync(partial, restoringFile(options.dataDir));
    } finally {
      rmSync(partial, { force: true });
    }
    syncPath(options.dataDir);
    return { replaced: finishRestore(options.dataDir)?.replaced };
  } finally {
    lock.release();
  }
}

function verify(copy: string, options: RestoreOptions): void {
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(copy, { readOnly: true, defensive: true });
    const { current } = planMigrations(db, options.backupFile, splitMigrations(options.migrations).main, options.programVersion ?? 'unknown');
    if (current === 0) throw new AppError('precondition_failed', `${options.backupFile} holds no data of this program`);
    checkIntegrity(db, options.backupFile, 'integrity_check');
  } catch (error) {
    const explained = explainOpening(options.backupFile, error);
    // The usual advice for a damaged database, to restore a backup, does not help here.
    if (explained instanceof StartError && explained.reason === 'damaged')
      throw new StartError(
        'damaged',
        `The backup ${options.backupFile} cannot be used (it is damaged, or not a database): nothing was changed; take another one.`,
        { cause: explained },
      );
    throw explained;
  } finally {
    db?.close();
  }
}
