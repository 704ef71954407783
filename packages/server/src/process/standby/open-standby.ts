import type { RootConfig } from '../../config-schema.ts';
import { createControlSocket } from '../../gateway/control-socket.ts';
import { openStandbyListener } from '../../gateway/standby-listener.ts';
import { AppError } from '../../kernel/app-error.ts';
import type { Clock } from '../../kernel/clock.ts';
import { maxConfigBytes } from '../../kernel/config/load.ts';
import { watchConfig } from '../../kernel/config/watch-config.ts';
import { createEventBus } from '../../kernel/event-bus.ts';
import type { HomePaths } from '../../kernel/home-paths.ts';
import type { Log } from '../../kernel/log.ts';
import { readOwnFile } from '../../kernel/private-file.ts';

export interface StandbyOptions {
  readonly config: RootConfig;
  readonly home: HomePaths;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Why this daemon could not take over now. */
  readonly fault: () => string | undefined;
}

export interface Standby extends AsyncDisposable {
  readonly address: string | null;
}

/** Opens what a standby answers on: its listener, and the socket of its owner. */
export async function openStandby({ config, home, version, clock, log, fault }: StandbyOptions): Promise<Standby> {
  await using opened = new AsyncDisposableStack();
  // Before it answers: an edit after its first answer is noticed.
  const read = () => readOwnFile(home.configFile, { maxBytes: maxConfigBytes, followLinks: true })?.text;
  let known = read();
  opened.use(
    watchConfig({
      file: home.configFile,
      clock,
      async onChange() {
        const text = read();
        if (text === known) return;
        known = text;
        log.error(
          {},
          'config.yaml was edited on a standby: the edit is not used, and a take-over keeps it next to the file; edit the file of the active node',
        );
      },
      onError: (error) => log.error({ err: error }, 'Failed to look at the configuration file'),
    }),
  );
  const listener = opened.use(
    await openStandbyListener({
      config: config.gateway,
      homeDir: home.dir,
      clock,
      // Nobody follows events of a standby.
      bus: createEventBus((error) => log.error({ err: error }, 'An event listener failed')),
      log,
      version,
      lease() {
        const detail = fault();
        return detail === undefined ? { status: 'ok', detail: 'waits for the active node' } : { status: 'failed', detail };
      },
    }),
  );
  opened.use(
    await createControlSocket({
      file: home.socketFile,
      backupsDir: home.backupsDir,
      info: () => ({ address: listener.address, pid: process.pid, version }),
      backup: () => Promise.reject(new AppError('unavailable', 'This node is a standby: the active one answers')),
      serve: listener.serve,
      clock,
      log,
    }),
  );
  const owned = opened.move();
  return { address: listener.address, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
