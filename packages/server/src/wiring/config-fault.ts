import { isDeepStrictEqual } from 'node:util';
import { RootConfig } from '../config-schema.ts';
import type { ConfigError } from '../kernel/config/config-error.ts';
import type { LoadedConfig } from '../kernel/config/load.ts';
import { createEventBus } from '../kernel/event-bus.ts';
import { silentLog } from '../kernel/log.ts';
import { createModels } from '../llm/create-models.ts';
import { probeHttp } from '../llm/discover.ts';
import { createEmbedder } from '../llm/embeddings.ts';
import type { Assembly } from './assembly.ts';
import { modelsNamedBy } from './models.ts';

/**
 * Converts the error of a module that rejected its configuration (a model that no provider has); such
 * errors start with the dotted key. Undefined for all others.
 */
export function asConfigError(error: unknown, loaded: LoadedConfig<RootConfig>): ConfigError | undefined {
  if (!(error instanceof Error)) return undefined;
  const [, key, message] = /^([a-z]+\.[\w.-]+): (.+)$/s.exec(error.message) ?? [];
  if (key === undefined || message === undefined) return undefined;
  const path = key.split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : part));
  return path[0] !== undefined && Object.hasOwn(RootConfig.shape, path[0]) ? loaded.errorAt(path, message) : undefined;
}

/** Builds what only a start would: fails with the ConfigError with which it would end. */
export async function checkBuild({ options, clock }: Pick<Assembly, 'options' | 'clock'>, loaded: LoadedConfig<RootConfig>): Promise<void> {
  const { env, configuration, overrides = {} } = options;
  const { config } = loaded;
  const { current } = configuration;
  // It may search for local model servers.
  if ((['providers', 'models', 'agents', 'embedding'] as const).every((section) => isDeepStrictEqual(config[section], current[section]))) return;
  await using built = new AsyncDisposableStack();
  try {
    const models = await createModels({
      providers: config.providers,
      modelsConfig: config.models,
      env,
      probe: overrides.probe === null ? undefined : (overrides.probe ?? probeHttp),
      bus: createEventBus(() => {}),
      clock,
      log: silentLog,
      named: modelsNamedBy(config),
    });
    built.use(models);
    const embedder = createEmbedder(config.embedding, { providers: config.providers, clock });
    if (embedder !== undefined) built.use(embedder);
  } catch (error) {
    throw asConfigError(error, loaded) ?? error;
  }
}
