import { defaultBackupFile } from '../gateway/control-socket.ts';
import { toAppError } from '../kernel/app-error.ts';
import { systemClock } from '../kernel/clock.ts';
import { openDb } from '../kernel/db/sqlite/open-db.ts';
import { homePaths } from '../kernel/home-paths.ts';
import { acquireLock } from '../kernel/lifecycle/lock-file.ts';
import { silentLog } from '../kernel/log.ts';
import { migrations } from '../transactions/registry.ts';
import { version } from '../version.ts';

/** Prints one line of JSON; a job prints any number of `progress` and then `result` or `error` (packages/cli/README.md). */
export type PrintLine = (value: object) => void;

/** Copies the data of a stopped daemon; for a running one the control socket is used instead. */
export function runBackup(home: string, file: string | undefined, print: PrintLine): Promise<void> {
  return job(print, async () => {
    const { dataDir, backupsDir } = homePaths(home);
    const target = file === undefined ? defaultBackupFile(backupsDir, systemClock) : file;
    const lock = acquireLock(dataDir);
    try {
      await using db = await openDb({ dataDir, backupsDir, clock: systemClock, log: silentLog, programVersion: version });
      const { bytes } = await db.backup(target, (done, total) => print({ progress: { done, total } }));
      return { file: target, bytes };
    } finally {
      lock.release();
    }
  });
}

/** Replaces the data of a stopped daemon by a backup; the old data is kept next to it. */
export function runRestore(home: string, file: string, print: PrintLine): Promise<void> {
  return job(print, async () => {
    // It opens SQLite in this thread, which a daemon never does.
    const [{ restoreBackup }, { statSync }] = await Promise.all([import('../kernel/db/sqlite/restore.ts'), import('node:fs')]);
    const { replaced } = restoreBackup({ backupFile: file, dataDir: homePaths(home).dataDir, migrations, programVersion: version });
    return { file, bytes: statSync(file).size, ...(replaced !== undefined && { previous: replaced }) };
  });
}

async function job(print: PrintLine, run: () => Promise<object>): Promise<void> {
  try {
    print({ result: await run() });
  } catch (failure) {
    print({ error: { code: toAppError(failure).code, message: failure instanceof Error ? failure.message : String(failure) } });
  }
}
