import { existsSync, statSync } from 'node:fs';
import type { RootConfig } from '../config-schema.ts';
import { checkBrowser, checkClock, checkDisk, checkJail, checkPort, type Finding, ok, warn } from './doctor-machine.ts';
import { systemClock } from '../kernel/clock.ts';
import { ConfigError } from '../kernel/config/config-error.ts';
import { refuseImported } from '../kernel/db/import/imported-note.ts';
import { databaseFile } from '../kernel/db/sqlite/database-files.ts';
import { createEventBus } from '../kernel/event-bus.ts';
import { layeredEnvironment } from '../features/operations/secrets/vault/environment.ts';
import type { SecretLookup } from '../kernel/config/configuration.ts';
import type { Environment } from '../kernel/config/references.ts';
import { checkAccess } from '../kernel/home.ts';
import { type HomePaths, homePaths, sharedPaths } from '../kernel/home-paths.ts';
import { openInstallKey } from '../kernel/install-key.ts';
import { systemKeyring } from '../kernel/keyring.ts';
import { type LockHolder, lockHolder } from '../kernel/lifecycle/lock-file.ts';
import { silentLog } from '../kernel/log.ts';
import { checkPrivate, readOwnFile } from '../kernel/private-file.ts';
import { createModels } from '../llm/create-models.ts';
import { probeHttp } from '../llm/discover.ts';
import { checkPrices } from './doctor-prices.ts';
import { loadRootConfig } from './load-root-config.ts';
import { masterKeyOf } from './master-key.ts';
import { requiredNode } from './required-node.ts';
import { copiedSecrets } from './stored-secrets.ts';
import { version } from '../version.ts';

export interface Check extends Finding {
  readonly name: 'node' | 'clock' | 'home' | 'permissions' | 'key' | 'config' | 'disk' | 'lock' | 'port' | 'database' | 'models' | 'jail' | 'browser';
}

/** Checks an installation without changing anything in it; the database of a running daemon is not opened. */
export async function examine(home: string, env: Environment): Promise<Check[]> {
  const paths = homePaths(home);
  let secrets: SecretLookup = () => undefined;
  let holder: string | undefined;
  let config: RootConfig | undefined;
  const checks: Check[] = [];
  const check = async (name: Check['name'], run: () => Finding | Promise<Finding>) => {
    try {
      checks.push({ name, ...(await run()) });
    } catch (error) {
      checks.push({ name, status: 'fail', detail: error instanceof Error ? error.message : String(error) });
    }
  };
  await check('node', () => {
    if (Number.parseInt(process.versions.node, 10) < requiredNode)
      return { status: 'fail', detail: `Node ${process.version}; ${requiredNode} or newer is needed` };
    return ok(`Node ${process.version}, Gatehouse ${version}`);
  });
  await check('clock', () => checkClock([paths.configFile, databaseFile(paths.dataDir)], systemClock));
  await check('home', () => examineHome(paths));
  await check('permissions', () => examinePermissions(paths));
  await check('key', () => examineKey(paths, env));
  await check('config', () => {
    const file = readOwnFile(paths.configFile, { maxBytes: 1_048_576, followLinks: true });
    if (file === undefined) return warn(`${paths.configFile} does not exist`, 'The first start writes one.');
    secrets = copiedSecrets(paths, env);
    try {
      ({ config } = loadRootConfig({ path: paths.configFile, text: file.text }, env, {}, secrets));
    } catch (error) {
      if (!(error instanceof ConfigError) || !existsSync(paths.lastGoodFile)) throw error;
      return {
        status: 'fail',
        detail: error.message,
        hint: `A start uses the last configuration that could be used. Repair config.yaml, or take an earlier version with "gatehouse config rollback".`,
      };
    }
    return ok(paths.configFile);
  });
  await check('disk', () => checkDisk(paths.dir, config?.storage.minFreeBytes ?? 0));
  await check('lock', () => {
    holder = existsSync(paths.dataDir) ? describeHolder(lockHolder(paths.dataDir)) : undefined;
    return ok(holder === undefined ? 'no daemon uses this home folder' : `held by the daemon with ${holder}`);
  });
  await check('port', () => (config === undefined ? warn('not checked without a configuration') : checkPort(config, holder)));
  await check('database', () => (config?.storage.driver === 'postgres' ? examinePostgres(config, paths) : examineDatabase(paths, holder)));
  await check('models', () =>
    config === undefined ? warn('not checked without a configuration') : examineModels(config, layeredEnvironment(env, secrets)),
  );
  await check('jail', () => checkJail(systemClock));
  const hasJail = checks.at(-1)?.status === 'ok';
  await check('browser', () => checkBrowser(config?.browser, hasJail));
  return checks;
}

function describeHolder(holder: Partial<LockHolder> | undefined): string | undefined {
  if (holder === undefined) return undefined;
  const { pid, host, address } = holder;
  return [
    pid === undefined ? 'an unknown pid' : `pid ${pid}`,
    host === undefined ? [] : `on host ${host}`,
    address === undefined ? [] : `at ${address}`,
  ]
    .flat()
    .join(' ');
}

function examineHome({ dir }: HomePaths): Finding {
  if (!existsSync(dir)) return warn(`${dir} does not exist`, 'The first start creates it.');
  const stats = statSync(dir);
  if (!stats.isDirectory()) return { status: 'fail', detail: `${dir} is not a folder` };
  checkAccess(dir, stats);
  return ok(dir);
}

function examinePermissions(paths: HomePaths): Finding {
  if (!existsSync(paths.dir)) return ok('nothing there yet');
  for (const folder of [paths.dir, paths.dataDir, paths.workspacesDir, paths.backupsDir, paths.mediaDir])
    if (existsSync(folder)) checkPrivate(folder, statSync(folder), '700');
  for (const file of [paths.tokenFile, paths.keyFile, paths.secretsFile]) if (existsSync(file)) checkPrivate(file, statSync(file), '600');
  return ok('only the owner has access');
}

function examineKey({ keyFile }: HomePaths, env: Environment): Finding {
  if (masterKeyOf(env) !== undefined) return ok('from the environment');
  if (!existsSync(keyFile)) return ok('none yet');
  const { key, place } = openInstallKey(keyFile, systemKeyring(env));
  return ok(place === 'file' ? keyFile : `in the system's keyring, entry ${key.fingerprint()} of the service gatehouse`);
}

async function examineDatabase({ dataDir }: HomePaths, holder: string | undefined): Promise<Finding> {
  const file = databaseFile(dataDir);
  if (!existsSync(file)) return ok('none yet');
  if (holder !== undefined) return ok(`in use by the running daemon (${holder})`);
  refuseImported(dataDir);
  // They load SQLite into this thread, which a daemon never does.
  const [{ openReader }, { quickCheck }] = await Promise.all([
    import('../kernel/db/sqlite/connection.ts'),
    import('../kernel/db/sqlite/quick-check.ts'),
  ]);
  const db = openReader(file);
  try {
    quickCheck(db, file);
  } finally {
    db.close();
  }
  return ok(`${file} is sound`);
}

/** Asks the server, also while the daemon runs: one connection more does not disturb it. */
async function examinePostgres({ storage }: RootConfig, paths: HomePaths): Promise<Finding> {
  const [{ checkPostgres }, { placeOf }, { serverAddress }] = await Promise.all([
    import('../kernel/db/postgres/open-postgres.ts'),
    import('../kernel/db/postgres/place.ts'),
    import('../kernel/db/postgres/server-address.ts'),
  ]);
  const { sharedDir } = sharedPaths(paths, storage.sharedPath ?? '.');
  if (!existsSync(sharedDir)) return { status: 'fail', detail: `${sharedDir} does not exist, and storage.sharedPath names it` };
  const address = serverAddress(storage, paths.dir);
  const { serverVersion, warnings } = await checkPostgres(address);
  const detail = `PostgreSQL ${serverVersion} at ${placeOf(address.url)}`;
  return warnings.length === 0 ? ok(detail) : warn(`${detail}: ${warnings.join('; ')}`);
}

async function examineModels(config: RootConfig, env: Environment): Promise<Finding> {
  const bus = createEventBus(() => {});
  await using models = await createModels({
    providers: config.providers,
    modelsConfig: config.models,
    env,
    probe: probeHttp,
    bus,
    clock: systemClock,
    log: silentLog,
  });
  const found = models.describeDiscovery();
  const connected = found.providers.filter((provider) => provider.source !== 'built_in');
  if (connected.length === 0)
    return warn('no model provider is connected', 'Run "gatehouse setup", set a key such as OPENAI_API_KEY, or start a local model server.');
  const detail = `${found.defaultModel}; ${connected.map((provider) => `${provider.id} (${provider.from})`).join(', ')}`;
  return checkPrices(models.describeProviders(), detail, systemClock.now());
}
