import { existsSync } from 'node:fs';
import { defaultBackupFile } from '../gateway/control-socket.ts';
import { AppError, toAppError } from '../kernel/app-error.ts';
import { systemClock } from '../kernel/clock.ts';
import type { Environment } from '../kernel/config/references.ts';
import { postgresBackups } from '../kernel/db/postgres/place.ts';
import { openDb } from '../kernel/db/sqlite/open-db.ts';
import { homePaths } from '../kernel/home-paths.ts';
import { type KeyPlace, moveInstallKey, openInstallKey } from '../kernel/install-key.ts';
import { systemKeyring } from '../kernel/keyring.ts';
import { acquireLock } from '../kernel/lifecycle/lock-file.ts';
import { silentLog } from '../kernel/log.ts';
import { readOwnFile } from '../kernel/private-file.ts';
import { migrations } from '../transactions/registry.ts';
import { loadRootConfig } from './load-root-config.ts';
import { masterKeyOf } from './master-key.ts';
import { copiedSecrets } from './stored-secrets.ts';
import { version } from '../version.ts';

/** Prints one line of JSON; a job prints any number of `progress` and then `result` or `error` (packages/cli/README.md). */
export type PrintLine = (value: object) => void;

/** Copies the data of a stopped daemon; for a running one the control socket is used instead. */
export function runBackup(home: string, file: string | undefined, env: Environment, print: PrintLine): Promise<void> {
  return job(print, async () => {
    const { dataDir, backupsDir } = homePaths(home);
    refusePostgres(home, env);
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
export function runRestore(home: string, file: string, env: Environment, print: PrintLine): Promise<void> {
  return job(print, async () => {
    refusePostgres(home, env);
    // It opens SQLite in this thread, which a daemon never does.
    const [{ restoreBackup }, { statSync }] = await Promise.all([import('../kernel/db/sqlite/restore.ts'), import('node:fs')]);
    const { replaced } = restoreBackup({ backupFile: file, dataDir: homePaths(home).dataDir, migrations, programVersion: version });
    return { file, bytes: statSync(file).size, ...(replaced !== undefined && { previous: replaced }) };
  });
}

/** Copies the data of a stopped daemon from SQLite into PostgreSQL. */
export function runStorageImport(home: string, to: string | undefined, env: Environment, print: PrintLine): Promise<void> {
  // It opens SQLite in this thread and loads the driver of PostgreSQL: a daemon does neither.
  return job(print, async () => (await import('./storage-import.ts')).importStorage(home, to, env, print));
}

/** Moves the install key into the file of the home folder or the system's keyring, or says where it is. The key stays the same, so a daemon may run. */
export function runInstallKey(home: string, to: KeyPlace | undefined, env: Environment, print: PrintLine): Promise<void> {
  return job(print, async () => {
    const { keyFile } = homePaths(home);
    if (masterKeyOf(env) !== undefined)
      throw new AppError(
        'precondition_failed',
        'The install key comes from GATEHOUSE_MASTER_KEY or GATEHOUSE_MASTER_KEY_FILE, which the home folder does not keep',
      );
    const keyring = systemKeyring(env);
    const isThere = existsSync(keyFile);
    const found = isThere && to === undefined ? { ...openInstallKey(keyFile, keyring), moved: false } : to && moveInstallKey(keyFile, to, keyring);
    if (found === undefined) throw new AppError('not_found', `There is no ${keyFile} yet: the first start makes it`);
    const { key, place, moved } = found;
    return { place, moved, account: key.fingerprint(), keyFile };
  });
}

/** The tools of PostgreSQL copy and restore its data; an old file in the home folder must not be taken for it. */
function refusePostgres(home: string, env: Environment): void {
  if (driverOf(home, env) === 'postgres') throw new AppError('precondition_failed', postgresBackups);
}

/** A configuration that cannot be read does not keep anybody from a backup of what is there. */
function driverOf(home: string, env: Environment): 'sqlite' | 'postgres' {
  const paths = homePaths(home);
  const path = paths.configFile;
  try {
    const file = readOwnFile(path, { maxBytes: 1_048_576, followLinks: true });
    return file === undefined ? 'sqlite' : loadRootConfig({ path, text: file.text }, env, {}, copiedSecrets(paths, env)).config.storage.driver;
  } catch {
    return 'sqlite';
  }
}

async function job(print: PrintLine, run: () => Promise<object>): Promise<void> {
  try {
    print({ result: await run() });
  } catch (failure) {
    print({ error: { code: toAppError(failure).code, message: failure instanceof Error ? failure.message : String(failure) } });
  }
}
