import type { RootConfig } from '../config-schema.ts';
import { modelNamesOf } from '../features/agents/agents/model-names.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Live } from '../kernel/config/live.ts';
import type { Log } from '../kernel/log.ts';
import { type ConfiguredModels, createModels, type ModelSettings } from '../llm/create-models.ts';
import { probeHttp } from '../llm/discover.ts';
import { createEmbedder } from '../llm/embeddings.ts';
import type { Assembly } from './assembly.ts';
import type { Foundation } from './foundation.ts';

/** Wires model providers, with every call metered and traced, and the embedding model. */
export async function wireModels(
  { building, options, environment, live, bus, clock }: Assembly,
  { metrics, secrets }: Pick<Foundation, 'metrics' | 'secrets'>,
) {
  const { config, log, overrides = {} } = options;
  const settings = live(({ providers, models: section, agents }) => ({
    providers,
    modelsConfig: section,
    named: modelsNamedBy({ agents }),
  }));
  const models = building.use(
    await createModels({
      ...settings.current,
      env: environment,
      probe: overrides.probe === null ? undefined : (overrides.probe ?? probeHttp),
      bus,
      clock,
      log: log.module('models'),
      hideSecrets: options.redactor.hide,
    }),
  );
  building.use(settings.onChange(models.reconfigure));
  // Keys of vendors that are not configured are searched for in the store, too.
  building.use(secrets.api.onChange(() => (settings.current.modelsConfig.discover ? models.reconfigure(settings.current) : undefined)));
  const isProbing = overrides.probe !== null;
  if (isProbing) building.use(listInBackground(models, settings, { clock, log: log.module('models') }));
  const providers = live((whole) => whole.providers);
  const embedder = createEmbedder(config.embedding, { providers, clock });
  if (embedder !== undefined) building.use(embedder);
  return {
    models,
    embedder,
    generate: metrics.generate(models.generate),
    knowsModel: (name: string) => models.resolve(name) !== undefined,
  };
}

/** Lists of models are not worth a wait at the start. */
const listAfterMs = 3_000;
/** A provider that gave no list is asked again after this time, the others once a day. */
const listEveryMs = 3_600_000;

/** Asks providers for their models: a little after the start and after each change, as long as `models.fetch` says so. */
function listInBackground(
  models: ConfiguredModels,
  settings: Live<ModelSettings>,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): AsyncDisposable {
  const ending = new AbortController();
  let asking = Promise.resolve();
  let cancel = () => {};
  const schedule = (ms: number): void => {
    cancel();
    cancel = clock.after(ms, () => {
      asking = asking
        .then(() => models.refreshStale(ending.signal))
        .catch((error: unknown) => log.error({ err: error }, 'Failed to add the models that providers list'));
      schedule(listEveryMs);
    });
  };
  schedule(listAfterMs);
  const following = settings.onChange(() => schedule(0));
  return {
    async [Symbol.asyncDispose]() {
      following[Symbol.dispose]();
      cancel();
      ending.abort();
      await asking;
    },
  };
}

/** Returns the models that agents of config.yaml name. */
export function modelsNamedBy({ agents }: Pick<RootConfig, 'agents'>): string[] {
  return Object.values(agents)
    .flatMap((agent) => modelNamesOf(agent))
    .filter((name) => name !== undefined);
}
