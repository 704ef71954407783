import { existsSync } from 'node:fs';
import { createMetrics } from '../features/operations/observability/metrics.ts';
import type { Clock } from '../kernel/clock.ts';
import type { DbStatus } from '../kernel/db/db.ts';
import { databaseFile, restoringFile } from '../kernel/db/sqlite/database-files.ts';
import { openDb } from '../kernel/db/sqlite/open-db.ts';
import { createDiskWatch } from '../kernel/disk-space.ts';
import type { EventBus } from '../kernel/event-bus.ts';
import { ownBuildFiles, watchBuild } from '../kernel/lifecycle/build-watch.ts';
import { beginLifetime } from '../kernel/lifecycle/lifetime.ts';
import { watchLoad } from '../kernel/lifecycle/load.ts';
import { beginHeartbeat } from '../kernel/lifecycle/watchdog.ts';
import type { ServerOptions } from '../server-handle.ts';

export interface CoreDeps {
  /** Owns everything built here. */
  readonly building: AsyncDisposableStack;
  readonly options: ServerOptions;
  readonly bus: EventBus;
  readonly clock: Clock;
}
export type Core = Awaited<ReturnType<typeof openCore>>;

/** Opens the foundation of all modules: the lock of the data folder, metrics, and the database. */
export async function openCore({ building, options, bus, clock }: CoreDeps) {
  const { config, home, log, overrides = {} } = options;
  // Built first: the folder is locked before anything opens a file in it, and a clean shutdown is recorded last.
  const lifetime = building.use(beginLifetime(home.dataDir, clock));
  const metrics = building.use(createMetrics({ version: options.version, clock, bus }));
  // Most daemons have no collector, and its client is large.
  const traces =
    config.observability.traces === undefined
      ? undefined
      : building.use(
          (await import('../features/operations/observability/traces/traces.ts')).openTraces(config.observability.traces, {
            version: options.version,
            clock,
            log: log.module('traces'),
          }),
        );
  const load = building.use(
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
  const isLost = lifetime.hadData && !existsSync(databaseFile(home.dataDir)) && !existsSync(restoringFile(home.dataDir));
  const warnings = [
    ...(lifetime.earlierFault === undefined ? [] : [`The last run ended after a fault. ${lifetime.earlierFault}`]),
    ...(isLost
      ? [`There was no database in ${home.dataDir}, although daemons ran here before: created a new one. Restore a backup with "gatehouse restore"`]
      : []),
  ];
  const build = building.use(
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
  let filesFault: string | undefined;
  let damage: Error | undefined;
  const opened = building.use(
    await openDb({
      dataDir: home.dataDir,
      backupsDir: home.backupsDir,
      ...(overrides.storageWorker !== undefined && { workerUrl: overrides.storageWorker }),
      clock,
      log: log.module('storage'),
      programVersion: options.version,
      check: lifetime.uncleanEnd,
      heartbeat: options.watchdog === true ? building.use(beginHeartbeat(clock)).beats : undefined,
      onFiles(fault) {
        filesFault = fault;
        if (fault === undefined) return;
        bus.emit('system:error', { source: 'storage', message: fault, timestamp: clock.now() });
        try {
          lifetime.noteFault(fault);
        } catch (error) {
          log.warn({ err: error }, 'Failed to record the fault for the next start');
        }
      },
      onDamage(error) {
        damage = error;
        log.fatal({ err: error }, 'The database is damaged');
        bus.emit('system:error', { source: 'storage', message: error.message, timestamp: clock.now() });
      },
    }),
  );
  const db = metrics.db(overrides.db?.(opened) ?? opened);
  /** Fails once the database is known to be damaged. */
  const storage = (): Promise<DbStatus> => (damage === undefined ? db.status() : Promise.reject(damage));
  /** Returns why nothing new can be stored now. */
  const storageFault = () => filesFault ?? disk.shortage();
  /** Returns why no new work is accepted now. */
  const refusal = () => load.overload() ?? storageFault();
  return { lifetime, metrics, traces, load, disk, build, db, storage, storageFault, refusal, warnings };
}
