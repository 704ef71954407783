import { t } from '../language.ts';
import type { Result } from '@gatehouse/contract';
import { useEffect } from 'react';
import { useSession } from './context.ts';
import { type Loaded, type LoadOptions, useLoad } from './use-load.ts';
import { useStore } from './store.ts';
import { isRecord } from '../ui/schema/paths.ts';
import { createLookup, isSchema, type Lookup } from '../ui/schema/schema.ts';
import { childSettings, type Setting, settingOf } from '../ui/schema/setting.ts';

/** The configuration of the gateway: what config.yaml says, and what is in force. */
export interface Config {
  readonly digest: string;
  readonly written: Readonly<Record<string, unknown>>;
  readonly inForce: unknown;
  readonly restartNeeded: readonly string[];
  readonly fault: string | undefined;
}

/** Loads the configuration, and again when it changes, by whomever. */
export function useConfig(): Loaded<Config> {
  const { client, live } = useSession();
  const loaded = useLoad(
    ['config.read'],
    async (signal): Promise<Config> => {
      const read: Result<'config.read'> = await client.call('config.read', { written: true }, { signal });
      return {
        digest: read.digest,
        written: isRecord(read.written) ? read.written : {},
        inForce: read.config,
        restartNeeded: read.restartNeeded,
        fault: read.written === undefined ? (read.fault ?? t('config.yaml is not valid YAML')) : read.fault,
      };
    },
    { changedBy: ['config:patched', 'secret:modified'] },
  );
  // A restart puts in force what waited for it.
  const { connection } = useStore(live.state);
  const { reload } = loaded;
  useEffect(() => {
    if (connection === 'open') reload();
  }, [connection, reload]);
  return loaded;
}

export interface ConfigSchema {
  readonly lookup: Lookup;
  readonly sections: readonly Setting[];
}

/** Loads the schema of the configuration. */
export function useConfigSchema(options: Pick<LoadOptions, 'enabled'> = {}): Loaded<ConfigSchema> {
  const { client } = useSession();
  return useLoad(
    ['config.schema'],
    async (signal) => {
      const { schema } = await client.call('config.schema', {}, { signal });
      const { $defs } = schema;
      const lookup = createLookup(isSchema($defs) ? $defs : {});
      return { lookup, sections: childSettings(settingOf([], schema, lookup), lookup) };
    },
    options,
  );
}
