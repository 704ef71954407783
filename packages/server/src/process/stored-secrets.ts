import { existsSync } from 'node:fs';
import * as z from 'zod';
import { sealedSecrets } from '../features/operations/secrets/store.ts';
import { type SealedSecret, SecretVault } from '../features/operations/secrets/vault/vault.ts';
import { systemClock } from '../kernel/clock.ts';
import type { SecretLookup } from '../kernel/config/configuration.ts';
import { loadConfig } from '../kernel/config/load.ts';
import type { Environment } from '../kernel/config/references.ts';
import { StorageConfig } from '../kernel/db/config.ts';
import { databaseFile } from '../kernel/db/sqlite/database-files.ts';
import type { HomePaths } from '../kernel/home-paths.ts';
import { openInstallKey } from '../kernel/install-key.ts';
import { systemKeyring } from '../kernel/keyring.ts';
import { masterKeyOf } from './master-key.ts';

/** Returns the secrets of the sealed copy, for commands that read the configuration without starting a daemon; they change nothing. */
export function copiedSecrets(paths: HomePaths, env: Environment): SecretLookup {
  if (!existsSync(paths.secretsFile)) return () => undefined;
  const key = masterKeyOf(env) ?? (existsSync(paths.keyFile) ? openInstallKey(paths.keyFile, systemKeyring(env)).key : undefined);
  if (key === undefined) return () => undefined;
  const vault = new SecretVault({ file: paths.secretsFile, key, redactor: { add() {} } });
  return (name) => vault.get(name);
}

const Rows = z.array(z.object({ name: z.string(), sealed: z.string() }));

/**
 * Reads the secrets of the database for a start whose copy lacks one that the configuration names: the copy was lost, or could not be
 * written. Returns undefined when the database has none, or cannot be read now, which the start itself reports.
 */
export async function readStoredSecrets(
  paths: HomePaths,
  config: { readonly text: string; readonly env: Environment; readonly secrets: SecretLookup },
): Promise<readonly SealedSecret[] | undefined> {
  try {
    const storage = storageOf(config);
    return Rows.parse(storage.driver === 'sqlite' ? await readSqlite(paths) : await readPostgres(storage, paths));
  } catch {
    return undefined;
  }
}

/** The storage section alone: the other sections refer to what is looked for. */
function storageOf({ text, env, secrets }: { readonly text: string; readonly env: Environment; readonly secrets: SecretLookup }): StorageConfig {
  const schema = z.looseObject({ storage: StorageConfig().prefault({}) });
  return loadConfig({ schema, file: '', text, env, secrets: (name) => secrets(name) ?? 'not known yet' }).config.storage;
}

async function readSqlite({ dataDir }: HomePaths): Promise<unknown> {
  const file = databaseFile(dataDir);
  if (!existsSync(file)) return [];
  // It loads SQLite into this thread, which a daemon never does otherwise.
  const { openReader } = await import('../kernel/db/sqlite/connection.ts');
  const db = openReader(file);
  try {
    return db.prepare(sealedSecrets).all();
  } finally {
    db.close();
  }
}

async function readPostgres(storage: StorageConfig, { dir }: HomePaths): Promise<unknown> {
  const [{ Connection }, { serverAddress }] = await Promise.all([
    import('../kernel/db/postgres/connection.ts'),
    import('../kernel/db/postgres/server-address.ts'),
  ]);
  const connection = await Connection.open({ address: serverAddress(storage, dir), purpose: 'read', clock: systemClock });
  try {
    return (await connection.execute(undefined, sealedSecrets, [])).rows;
  } finally {
    await connection.close();
  }
}
