import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { RootConfig } from '../config-schema.ts';
import { indexAllAgain } from '../features/conversations/sessions/search/index-store.ts';
import { keepFingerprint } from '../features/operations/nodes/lease/statements.ts';
import { AppError } from '../kernel/app-error.ts';
import { systemClock } from '../kernel/clock.ts';
import type { SecretLookup } from '../kernel/config/configuration.ts';
import { type Environment, resolveReferences } from '../kernel/config/references.ts';
import { tlsParametersOf } from '../kernel/db/config.ts';
import { importHome } from '../kernel/db/import/import-home.ts';
import { type ServerAddress, serverAddress, serversOf } from '../kernel/db/postgres/server-address.ts';
import { type HomePaths, homePaths } from '../kernel/home-paths.ts';
import { type InstallKey, openInstallKey } from '../kernel/install-key.ts';
import { acquireLock } from '../kernel/lifecycle/lock-file.ts';
import { readOwnFile } from '../kernel/private-file.ts';
import { migrations } from '../transactions/registry.ts';
import { version } from '../version.ts';
import { copiedSecrets } from './stored-secrets.ts';
import { loadRootConfig } from './load-root-config.ts';
import type { PrintLine } from './maintenance.ts';
import { masterKeyOf } from './master-key.ts';

/** Triggers of other tables write into it. */
const lastTables = ['memory_change'];

/**
 * Copies the SQLite database of a stopped daemon into the PostgreSQL database of `to`, else of `storage.url`, and returns what a person
 * needs for the next steps.
 */
export async function importStorage(home: string, to: string | undefined, env: Environment, print: PrintLine): Promise<object> {
  const paths = homePaths(home);
  const secrets = copiedSecrets(paths, env);
  const config = readConfig(paths, env, secrets);
  const address = to === undefined ? configuredAddress(config, paths) : givenAddress(to, config, paths, (name) => env[name] || secrets(name));
  if (!existsSync(paths.dataDir)) throw new AppError('not_found', `There is no data in ${home}`);
  const lock = acquireLock(paths.dataDir);
  try {
    const { key, keyFile } = readKey(paths, env);
    const report = await importHome({
      dataDir: paths.dataDir,
      address,
      migrations,
      programVersion: version,
      clock: systemClock,
      lastTables,
      finish: [{ text: indexAllAgain }, { text: keepFingerprint, values: [key.fingerprint()] }],
      onProgress: (progress) => print({ progress }),
    });
    const folders = config.storage.sharedPath === undefined ? [paths.workspacesDir, paths.mediaDir, paths.skillsDir] : [];
    return {
      ...report,
      dataDir: paths.dataDir,
      ...(keyFile !== undefined && { keyFile }),
      ...(existsSync(paths.tokenFile) && { tokenFile: paths.tokenFile }),
      folders: folders.filter((folder) => existsSync(folder)),
    };
  } finally {
    lock.release();
  }
}

function readConfig({ configFile }: HomePaths, env: Environment, secrets: SecretLookup): RootConfig {
  const file = existsSync(configFile) ? readOwnFile(configFile, { maxBytes: 1_048_576, followLinks: true }) : undefined;
  return file === undefined ? RootConfig.parse({}) : loadRootConfig({ path: configFile, text: file.text }, env, {}, secrets).config;
}

function configuredAddress({ storage }: RootConfig, { configFile }: HomePaths): ServerAddress {
  if (storage.url !== undefined) return serverAddress(storage, dirname(configFile));
  throw new AppError('precondition_failed', `No target: set storage.url in ${configFile}, or name the database with --to '\${DATABASE_URL}'`);
}

/** TLS is that of config.yaml: the database of the command line is the one that it will name. */
function givenAddress(to: string, { storage }: RootConfig, { dir }: HomePaths, lookup: SecretLookup): ServerAddress {
  const resolved = resolveReferences(to, lookup);
  if (resolved.kind === 'problem') throw new AppError('invalid_params', `--to: ${resolved.message}`);
  const [url = null] = serversOf(resolved.text).map((server) => URL.parse(server));
  if (url === null || !/^postgres(?:ql)?:$/.test(url.protocol))
    throw new AppError(
      'invalid_params',
      `--to: expected postgres://user@host:port/database, or '\${NAME}' for a variable that holds it with its password`,
    );
  if (resolved.kind === 'literal' && url.password !== '')
    throw new AppError(
      'invalid_params',
      `--to: holds a password, which other users can read in a command line: take the URL from a variable with --to '\${NAME}'`,
    );
  if (storage.ssl || storage.sslCaPath !== undefined) {
    const names = tlsParametersOf(resolved.text);
    if (names.length > 0)
      throw new AppError(
        'invalid_params',
        `--to: names ${names.join(', ')}, with which storage.ssl and storage.sslCaPath of config.yaml would have no effect: say how to use TLS in one place`,
      );
  }
  return serverAddress({ ...storage, url: resolved.text }, dir);
}

/** Tokens and sealed values of the database are of use with this key alone. */
function readKey({ keyFile }: HomePaths, env: Environment): { readonly key: InstallKey; readonly keyFile?: string } {
  const key = masterKeyOf(env);
  if (key !== undefined) return { key };
  if (!existsSync(keyFile))
    throw new AppError(
      'precondition_failed',
      `${keyFile} is missing: restore it, or set GATEHOUSE_MASTER_KEY, because tokens of the database are void without it`,
    );
  return { key: openInstallKey(keyFile).key, keyFile };
}
