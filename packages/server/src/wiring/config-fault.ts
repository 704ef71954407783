import { RootConfig } from '../config-schema.ts';
import type { Clock } from '../kernel/clock.ts';
import type { ConfigError } from '../kernel/config/config-error.ts';
import { fixed } from '../kernel/config/live.ts';
import type { LoadedConfig } from '../kernel/config/load.ts';
import type { Environment } from '../kernel/config/references.ts';
import { createEventBus } from '../kernel/event-bus.ts';
import { silentLog } from '../kernel/log.ts';
import { createModels } from '../llm/create-models.ts';
import type { Probe } from '../llm/discover.ts';
import { createEmbedder } from '../llm/embeddings.ts';
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

/** Sources of what the configuration leaves open, as at a start. */
interface BuildDeps {
  readonly env: Environment;
  readonly probe: Probe | undefined;
  readonly clock: Clock;
}

/** Builds what only a start would: fails with the ConfigError with which it would end. */
export async function checkBuild({ env, probe, clock }: BuildDeps, loaded: LoadedConfig<RootConfig>): Promise<void> {
  const { config } = loaded;
  await using built = new AsyncDisposableStack();
  try {
    const models = await createModels({
      providers: config.providers,
      modelsConfig: config.models,
      env,
      probe,
      bus: createEventBus(() => {}),
      clock,
      log: silentLog,
      named: modelsNamedBy(config),
    });
    built.use(models);
    const embedder = createEmbedder(config.embedding, { providers: fixed(config.providers), clock });
    if (embedder !== undefined) built.use(embedder);
  } catch (error) {
    throw asConfigError(error, loaded) ?? error;
  }
}
