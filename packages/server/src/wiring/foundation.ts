import { existsSync } from 'node:fs';
import { livePart } from '../kernel/config/live.ts';
import { createAgeClock } from '../features/operations/age-clock/age-clock.ts';
import { createNodes } from '../features/operations/nodes/nodes.ts';
import { createMetrics } from '../features/operations/observability/metrics.ts';
import { feedbackOfTurns } from '../features/conversations/sessions/reading/past-turns/feedback-store.ts';
import { createTraces } from '../features/operations/traces/traces.ts';
import { createSecrets } from '../features/operations/secrets/secrets.ts';
import { type Clock, systemClock } from '../kernel/clock.ts';
import type { Db, DbStatus } from '../kernel/db/db.ts';
import { refuseImported } from '../kernel/db/import/imported-note.ts';
import { databaseFile, restoringFile } from '../kernel/db/sqlite/database-files.ts';
import { openDb, type OpenDbOptions } from '../kernel/db/sqlite/open-db.ts';
import { createDiskWatch } from '../kernel/disk-space.ts';
import { createEventBus } from '../kernel/event-bus.ts';
import { ownBuildFiles, watchBuild } from '../kernel/lifecycle/build-watch.ts';
import { beginLifetime, type Lifetime } from '../kernel/lifecycle/lifetime.ts';
import { type Load, watchLoad } from '../kernel/lifecycle/load.ts';
import { beginHeartbeat } from '../kernel/lifecycle/watchdog.ts';
import type { ServerOptions } from '../server-handle.ts';
import type { Assembly } from './assembly.ts';

/** What exists before the database, and so before the clock that is stored in it. */
interface Basis extends Pick<Assembly, 'building' | 'options' | 'bus'> {
  readonly clock: Clock;
}
export type Foundation = Awaited<ReturnType<typeof openFoundation>>;

/** Opens what all features need: the lock of the data folder, metrics, watches of the machine, the database, and the clock. */
export async function openFoundation(building: AsyncDisposableStack, options: ServerOptions) {
  const { home, log, overrides = {} } = options;
  const bus = createEventBus((error, kind) => log.error({ err: error, kind }, 'An event listener failed'));
  const basis: Basis = { building, options, bus, clock: overrides.clock ?? systemClock };
  // Built first: the folder is locked before anything opens a file in it, and a clean shutdown is recorded last.
  const lifetime = options.node?.lifetime ?? building.use(beginLifetime(home.dataDir, basis.clock));
  const metrics = building.use(createMetrics({ version: options.version, clock: basis.clock, bus }));
  const traces = await openTraces(basis);
  const load = watchEventLoop(basis);
  const disk = await watchDisk(basis);
  // Computed before the database is opened, which creates a missing one.
  const warnings = findLosses(options, lifetime);
  const build = watchProgram(basis);
  const storage = await openStorage(basis, lifetime);
  const db = metrics.db(overrides.db?.(storage.db) ?? storage.db);
  const clock = building.use(await createAgeClock({ db, clock: basis.clock, log: log.module('clock') }));
  const { bootId, homeId } = lifetime;
  const nodes = building.use(
    await createNodes({
      db,
      clock,
      log: log.module('nodes'),
      bootId,
      homeId,
      isSole: options.config.storage.driver === 'sqlite',
      lease: options.node?.lease,
      version: options.version,
    }),
  );
  const live: Assembly['live'] = (partOf) => livePart(options.configuration.live, partOf);
  const kept = building.use(
    createTraces({
      db,
      bus,
      clock,
      log: log.module('traces'),
      config: live((whole) => whole.observability),
      redact: options.redactor.redact,
      exported: traces?.write,
      feedbackOf: (ref, turnIds) => db.read(feedbackOfTurns, { ref, turnIds }),
    }),
  );
  const core: Assembly['core'] = (module) => ({ db, bus, clock, log: log.module(module), traceWork: kept.api.work });
  const secrets = building.use(await wireSecrets({ core, live }, options));
  const assembly: Assembly = {
    building,
    options,
    environment: secrets.api.environment,
    bootId,
    onClaimed: nodes.api.onClaimed,
    db,
    bus,
    clock,
    traceWork: kept.api.work,
    live,
    core,
  };
  building.use(assembly.live(({ logging }) => logging).onChange((levels) => options.logger.reset(levels)));
  /** Returns why nothing new can be stored now. */
  const storageFault = () => storage.fault() ?? disk.shortage();
  return {
    assembly,
    lifetime,
    nodes: nodes.api,
    secrets,
    metrics,
    traces,
    kept,
    load,
    disk,
    build,
    /** Why the clock may be wrong. */
    doubt: clock.doubt,
    /** Fails once the database is known to be damaged. */
    async storageStatus(): Promise<DbStatus> {
      const damage = storage.damage();
      if (damage !== undefined) throw damage;
      return db.status();
    },
    /** Returns why no new work is accepted now. */
    refusal: () => load.overload() ?? nodes.api.fault() ?? storageFault(),
    /** Whether accepted work must wait: nothing new can be stored, another daemon has taken over, or program files are missing. */
    isHeld: () => nodes.api.fault() !== undefined || storageFault() !== undefined || build.fault() !== undefined,
    warnings,
  };
}

function wireSecrets({ core, live }: Pick<Assembly, 'core' | 'live'>, { configuration, secrets, env, config }: ServerOptions) {
  return createSecrets({
    ...core('secrets'),
    vault: secrets,
    configuration,
    config: live(({ secrets: section }) => section),
    env,
    isSole: config.storage.driver === 'sqlite',
  });
}

async function openTraces({ building, options: { config, version, log }, clock }: Basis) {
  const { traces } = config.observability;
  if (traces === undefined) return undefined;
  // Most daemons have no collector, and its client is large.
  const module = await import('../features/operations/observability/traces/traces.ts');
  return building.use(module.openTraces(traces, { version, clock, log: log.module('traces') }));
}

function watchEventLoop({ building, options: { log, overrides = {} }, bus, clock }: Basis): Load {
  return building.use(
    overrides.load ??
      watchLoad({
        clock,
        onChange(reason) {
          if (reason === undefined) return log.info({}, 'Accepting new work again');
          log.error({ reason }, 'New work is refused for a while');
          bus.emit('system:error', { source: 'load', message: `${reason}: new work is refused for a while`, timestamp: clock.now() });
        },
      }),
  );
}

async function watchDisk({ building, options: { config, home, log, overrides = {} }, bus, clock }: Basis) {
  const disk = building.use(
    createDiskWatch({
      folders: [home.dataDir, home.workspacesDir, home.mediaDir].filter((folder) => existsSync(folder)),
      minFreeBytes: config.storage.minFreeBytes,
      clock,
      ...(overrides.freeSpace !== undefined && { freeSpace: overrides.freeSpace }),
      onChange(shortage) {
        if (shortage === undefined) return log.info({}, 'Disk space is available again: accepting new work');
        log.error({}, shortage);
        bus.emit('system:error', { source: 'disk', message: shortage, timestamp: clock.now() });
      },
    }),
  );
  await disk.check();
  return disk;
}

/** Returns warnings of what an earlier run lost. */
function findLosses({ home, config }: ServerOptions, lifetime: Lifetime): readonly string[] {
  const isLost =
    config.storage.driver === 'sqlite' && lifetime.hadData && !existsSync(databaseFile(home.dataDir)) && !existsSync(restoringFile(home.dataDir));
  return [
    ...(lifetime.earlierFault === undefined ? [] : [`The last run ended after a fault. ${lifetime.earlierFault}`]),
    ...(isLost
      ? [`There was no database in ${home.dataDir}, although daemons ran here before: created a new one. Restore a backup with "gatehouse restore"`]
      : []),
  ];
}

function watchProgram({ building, options: { log }, bus, clock }: Basis) {
  return building.use(
    watchBuild({
      files: ownBuildFiles(),
      clock,
      onReplaced: () => log.warn({}, 'Another build of the program was installed: this one keeps running until it is restarted'),
      onFault(fault) {
        if (fault === undefined) return log.info({}, 'The program files are back in place');
        log.error({}, fault);
        bus.emit('system:error', { source: 'program', message: fault, timestamp: clock.now() });
      },
    }),
  );
}

interface Storage {
  readonly db: Db;
  /** Returns what is wrong with the files of the database. */
  readonly fault: () => string | undefined;
  readonly damage: () => Error | undefined;
}

async function openStorage(basis: Basis, lifetime: Lifetime): Promise<Storage> {
  const { building, options, clock } = basis;
  const { home, log, overrides = {} } = options;
  let fault: string | undefined;
  const onFault = (found: string | undefined) => {
    fault = found;
    if (found !== undefined) basis.bus.emit('system:error', { source: 'storage', message: found, timestamp: clock.now() });
  };
  const shared = { fault: () => fault, damage: () => undefined };
  if (options.node !== undefined) {
    options.node.watchStorage(onFault);
    return { ...shared, db: options.node.db };
  }
  const common = {
    clock,
    log: log.module('storage'),
    programVersion: options.version,
    heartbeat: options.watchdog === true ? building.use(beginHeartbeat(clock)).beats : undefined,
  };
  const { storage } = options.config;
  if (storage.driver === 'sqlite') return openSqlite(basis, lifetime, common);
  // Most daemons never load it.
  const [{ openPostgresDb }, { serverAddress }] = await Promise.all([
    import('../kernel/db/postgres/open-postgres.ts'),
    import('../kernel/db/postgres/server-address.ts'),
  ]);
  const db = building.use(
    await openPostgresDb({
      ...common,
      workerUrl: overrides.storageWorker,
      address: serverAddress(storage, home.dir),
      poolSize: storage.poolSize,
      onFault,
    }),
  );
  return { ...shared, db };
}

async function openSqlite({ building, options, bus, clock }: Basis, lifetime: Lifetime, common: Omit<OpenDbOptions, 'dataDir'>): Promise<Storage> {
  const { home, log, overrides = {} } = options;
  refuseImported(home.dataDir);
  const announce = (message: string) => bus.emit('system:error', { source: 'storage', message, timestamp: clock.now() });
  let filesFault: string | undefined;
  let damage: Error | undefined;
  const db = building.use(
    await openDb({
      ...common,
      dataDir: home.dataDir,
      backupsDir: home.backupsDir,
      startThread: overrides.startStorageThread,
      check: lifetime.uncleanEnd,
      onFiles(fault) {
        filesFault = fault;
        if (fault === undefined) return;
        announce(fault);
        try {
          lifetime.noteFault(fault);
        } catch (error) {
          log.warn({ err: error }, 'Failed to record the fault for the next start');
        }
      },
      onDamage(error) {
        damage = error;
        log.fatal({ err: error }, 'The database is damaged');
        announce(error.message);
      },
    }),
  );
  return { db, fault: () => filesFault, damage: () => damage };
}
