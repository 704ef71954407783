import { realpathSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { RootConfig } from '../config-schema.ts';
import { createSettings } from '../features/operations/settings/settings.ts';
import { ConfigVersions, digestOf } from '../features/operations/settings/versions.ts';
import { owner } from '../gateway/owner.ts';
import { ConfigError } from '../kernel/config/config-error.ts';
import { createOwnFile, replaceOwnFile } from '../kernel/private-file.ts';
import { createSeal } from '../kernel/seal.ts';
import { probeHttp } from '../llm/discover.ts';
import type { Assembly } from './assembly.ts';
import { checkBuild } from './config-fault.ts';
import { modelsNamedBy } from './models.ts';

/** config.yaml was replaced by a newer version of the database while a server was built from it: read it again and build another one. */
export class ConfigReplacedError extends Error {
  override readonly name = 'ConfigReplacedError';
}

/** Sections with which only building shows whether they can be used; the default model may be one that only an agent names. */
const builtSections = ['providers', 'models', 'embedding'] as const;

/**
 * Wires the configuration with its versions, and brings the file and the versions together before anything is built from either.
 * @throws ConfigReplacedError
 */
export async function wireSettings(assembly: Assembly, { homeId }: { readonly homeId: string }) {
  const { options, db, bus, clock } = assembly;
  const { configuration, redactor, config } = options;
  const { probe } = options.overrides ?? {};
  const log = options.log.module('config');
  const versions = new ConfigVersions({
    db,
    clock,
    log,
    homeId,
    seal: createSeal(options.installKey.derive('config')),
    isShared: config.storage.driver === 'postgres',
    readText: () => configuration.readText(),
    // Deployment tools keep the file elsewhere, and link to it.
    writeText: (text) => replaceOwnFile(realpathSync(configuration.file), text),
    keepText(text) {
      const file = `${configuration.file}.unused-${digestOf(text).slice(0, 8)}`;
      createOwnFile(file, text);
      return file;
    },
    check: (text) => configuration.check(text),
  });
  const settings = createSettings({
    schema: RootConfig,
    configuration,
    versions,
    homeId,
    db,
    bus,
    clock,
    log,
    redactText: redactor.redact,
    async checkBuild(loaded) {
      const { current } = configuration;
      // It may search for local model servers.
      const named = modelsNamedBy(loaded.config);
      const hasAllNames = modelsNamedBy(current).every((name) => named.includes(name));
      if (hasAllNames && builtSections.every((section) => isDeepStrictEqual(loaded.config[section], current[section]))) return;
      await checkBuild({ env: assembly.environment, clock, probe: probe === null ? undefined : (probe ?? probeHttp) }, loaded);
    },
    isLocalOwner: ({ identity, transport, agentCaller }) =>
      agentCaller === undefined && (identity.tokenId === owner.tokenId || transport === 'process'),
  });
  let isReplaced = false;
  try {
    // The file was read before this daemon waited for its turn.
    isReplaced = await settings.api.settle({ isStandby: configuration.isStale() });
  } catch (error) {
    // With a file that cannot be used the server was started from the last one that could. A history that cannot be stored stops nothing.
    if (!(error instanceof ConfigError)) log.error({ err: error }, 'Failed to compare config.yaml with its versions');
  }
  if (isReplaced) throw new ConfigReplacedError('config.yaml was replaced by a newer version');
  return settings;
}
