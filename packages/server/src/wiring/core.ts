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

export interface GroundDeps {
  /** Owns what is built here. */
  readonly building: AsyncDisposableStack;
  readonly options: ServerOptions;
  readonly bus: EventBus;
  readonly clock: Clock;
}
export type Ground = Awaited<ReturnType<typeof openGround>>;

/** What all parts stand on: the lock of the data folder, what is measured of them, and the database. */
export async function openGround({ building, options, bus, clock }: GroundDeps) {
  const { config, home, log, overrides = {} } = options;
  // Built first: the folder is locked before anything opens a file in it, and a clean end is recorded last.
  const lifetime = building.use(beginLifetime(home.dataDir, clock));
  const metrics = building.use(createMetrics({ version: options.version, clock, bus }));
  // Most daemons have no collector, and what speaks to one is large.
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
    watchLoad({
      clock,
      onChange(reason) {
        if (reason === undefined) return log.info({}, 'New work is taken again');
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
        if (shortage === undefined) return log.info({}, 'There is room on the disk again: new work is accepted');
        log.error({}, shortage);
        bus.emit('system:error', { source: 'disk', message: shortage, timestamp: clock.now() });
      },
    }),
  );
  await disk.look();
  const isLost = lifetime.hadData && !existsSync(databaseFile(home.dataDir)) && !existsSync(restoringFile(home.dataDir));
  const warnings = [
    ...(lifetime.earlierFault === undefined ? [] : [`The last run ended after a fault. ${lifetime.earlierFault}`]),
    ...(isLost
      ? [
          `There was no database in ${home.dataDir}, although daemons ran here before: a new one was made. Bring back a backup with "gatehouse restore"`,
        ]
      : []),
  ];
  const build = building.use(
    watchBuild({
      files: ownBuildFiles(),
      clock,
      onReplaced: () => log.warn({}, 'Another build of the program was installed: this one goes on with its own files until it is restarted'),
      onFault(fault) {
        if (fault === undefined) return log.info({}, 'The files of the program are in their place again');
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
          log.warn({ err: error }, 'The fault could not be recorded for the next start');
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
  /** Why nothing new can be stored now. */
  const noRoom = () => filesFault ?? disk.shortage();
  /** Why no new work is accepted now. */
  const refusal = () => load.overload() ?? noRoom();
  return { lifetime, metrics, traces, load, disk, build, db, storage, noRoom, refusal, warnings };
}
