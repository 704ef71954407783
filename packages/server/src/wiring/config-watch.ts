import type { SettingsApi } from '../features/operations/settings/api.ts';
import { watchConfig } from '../kernel/config/watch-config.ts';
import type { Assembly } from './assembly.ts';

/** Puts a configuration file in force that was changed by hand, and stores it as a version; one that cannot be used is reported, and what is in force stays. */
export function wireConfigWatch({ building, options, bus, clock }: Assembly, { settle }: Pick<SettingsApi, 'settle'>): void {
  const { configuration } = options;
  const log = options.log.module('config');
  building.use(
    watchConfig({
      file: configuration.file,
      clock,
      async onChange() {
        if (!configuration.isStale()) return;
        try {
          await configuration.reload('file');
          if (await settle()) await configuration.reload('a newer version');
        } catch (error) {
          const reason = error instanceof Error ? error.message : String(error);
          const message = `The changed configuration cannot be used; the one in force stays: ${reason}`;
          log.error({}, message);
          bus.emit('system:error', { source: 'config', message, timestamp: clock.now() });
        }
      },
      onError: (error) => log.error({ err: error }, 'Failed to look at the configuration file'),
    }),
  );
}
