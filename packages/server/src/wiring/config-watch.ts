import type { SettingsApi } from '../features/operations/settings/api.ts';
import { watchConfig } from '../kernel/config/watch-config.ts';
import type { Assembly } from './assembly.ts';

/** Puts a configuration file in force that was changed by hand; one that cannot be used is reported, and what is in force stays. */
export function wireConfigWatch({ building, options, bus, clock }: Assembly, settings: Pick<SettingsApi, 'adopt'>): void {
  const log = options.log.module('config');
  building.use(
    watchConfig({
      file: options.configuration.file,
      clock,
      async onChange() {
        try {
          await settings.adopt();
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
