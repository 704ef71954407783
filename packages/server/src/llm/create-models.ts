import { isDeepStrictEqual } from 'node:util';
import { AnswerEffort, type ProviderType } from '@gatehouse/contract';
import type { Clock } from '../kernel/clock.ts';
import type { EventBus } from '../kernel/event-bus.ts';
import type { Log } from '../kernel/log.ts';
import { createMessagesClient } from './anthropic-messages/client.ts';
import { type CostOrigin, type ModelOrigin, modelsOf, originOf, unlistedModel } from './catalog.ts';
import type { ModelsConfig, ProvidersConfig } from './config.ts';
import { findKeys, findLocalServers, type FoundProvider, listConfigured, type Probe, probeHttp, requestModels } from './discover.ts';
import { asModelError, createGenerate, nothingUsed } from './generate.ts';
import { type ModelClient, ModelError, type ModelInfo, type ModelRequest, type ModelUsage } from './model.ts';
import type { Attempt, Models, ProviderInfo, ProviderState } from './models.ts';
import { createOfflineClient, offlineLimits, offlineModel } from './offline/offline.ts';
import { createChatClient } from './openai-chat/client.ts';
import { KeptClients } from './kept-clients.ts';
import { providerHeaders } from './provider-headers.ts';
import { keyValues, noKey, type ProviderKey, type ProviderKeys, providerKeys } from './provider-keys.ts';
import { type KnownState, ProviderStates } from './provider-states.ts';
import { candidateOf, listForTrial, listLimitMs, modelForTrial, type Trial, type TrialChoice, trialRequest, type TrialTarget } from './trial.ts';
import type { ListedModel } from './read-models.ts';
import { findUnsupported, hasEfforts } from './unsupported.ts';
import { type Vendor, vendors } from './vendors.ts';
import { Upstream } from './wire/upstream.ts';
import { cleanMessage } from './wire/wire-error.ts';

/** After which time lists of models are requested again. */
const staleMs = 86_400_000;

/** What the catalog is built from. */
export interface ModelSettings {
  readonly providers: ProvidersConfig;
  readonly modelsConfig: ModelsConfig;
  /** Models that agents name (`provider/modelId`): added to providers that list no models themselves. */
  readonly named?: readonly string[];
}

export interface CreateModelsOptions extends ModelSettings {
  /** Variables searched for keys; the process environment in the daemon, empty in tests. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Probes local servers; when undefined, none are searched for. */
  readonly probe: Probe | undefined;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  /** Removes every live secret from a provider's message: it may repeat more than the key that it was sent. */
  readonly hideSecrets?: (text: string) => string;
}

/** What startup prints: the providers and where each was found. */
export interface Discovery {
  readonly providers: readonly {
    readonly id: string;
    readonly name: string;
    readonly source: ProviderInfo['source'];
    readonly from: string;
    readonly modelCount: number;
  }[];
  /** `provider/modelId` */
  readonly defaultModel: string;
}

/** The catalog of a configuration. */
interface Catalog {
  readonly settings: ModelSettings;
  readonly found: readonly FoundProvider[];
  readonly providers: readonly ProviderInfo[];
  readonly list: readonly ModelInfo[];
  readonly resolve: Models['resolve'];
  readonly byDefault: ModelInfo;
  readonly discovery: Discovery;
}

/** A provider of the catalog with what is known about it, except for its key. */
export interface DescribedProvider extends Pick<FoundProvider, 'id' | 'source'> {
  readonly type: ProviderType;
  readonly baseUrl: string;
  readonly state: ProviderState;
  /** Empty when it has none. */
  readonly keys: readonly DescribedKey[];
  readonly models: readonly (ModelInfo & { readonly origin: ModelOrigin })[];
  /** When it was asked for its models last, except at the start. */
  readonly listedAtMs: number | undefined;
}

/** A key of a provider with what is known about it; never the key itself. */
export interface DescribedKey extends Pick<ProviderKey, 'id' | 'name'> {
  readonly state: KnownState;
}

export interface ConfiguredModels extends Models {
  describeProviders(): readonly DescribedProvider[];
  /** Clears what failed calls with one key of a provider, by its id, revealed. */
  clearKey(provider: string, key: string): void;
  /**
   * Prepares a call that shows whether a provider works. A success clears what earlier calls with the key showed of that model. Undefined
   * for a provider or a key that is not in the catalog, and for a candidate without an address.
   */
  prepareTrial(target: TrialTarget, choice: TrialChoice, signal: AbortSignal): Promise<Trial | undefined>;
  /** Returns where the price of a model comes from. */
  costOriginOf(model: ModelInfo): CostOrigin;
  /**
   * Asks a provider for its models and adds those to the catalog that it does not name in the configuration. Undefined for a provider that is
   * not in the catalog; `fault` says why there is no list.
   */
  refresh(provider: string, signal: AbortSignal): Promise<{ readonly listed: readonly string[]; readonly fault?: string } | undefined>;
  /** Asks each provider that names no models in the configuration and was not asked within a day. */
  refreshStale(signal: AbortSignal): Promise<void>;
  describeDiscovery(): Discovery;
  /**
   * Replaces the catalog. Running calls keep the client that they began with, and turns the models; what is known of providers that
   * stay the same is kept. Fails with an Error that names the configuration key, and keeps the catalog.
   */
  reconfigure(settings: ModelSettings): Promise<void>;
}

/** Builds the catalog and its clients. Fails with an Error that names the configuration key. */
export async function createModels(options: CreateModelsOptions): Promise<ConfiguredModels> {
  const { bus, clock } = options;
  const states = new ProviderStates(bus, clock, () => catalog.settings.modelsConfig.cooldownMs);
  /** Providers of models, also of those that running turns still use. */
  const providerOf = new WeakMap<ModelInfo, FoundProvider>();
  const clients = new KeptClients<FoundProvider, ModelClient>(
    (provider) => createClient(provider, options),
    (provider) => catalog.found.includes(provider),
  );
  const offline = createOfflineClient();
  /** When providers were asked for their models. */
  const askedAtMs = new Map<string, number>();
  let catalog = await build(options);

  async function build(settings: ModelSettings, before?: Catalog): Promise<Catalog> {
    const found = await findProviders({ ...options, ...settings }, before?.found ?? []);
    if (before?.settings === settings && isDeepStrictEqual(found, before.found)) return before;
    return toCatalog(settings, found);
  }

  function toCatalog(settings: ModelSettings, found: readonly FoundProvider[]): Catalog {
    const built = buildCatalog(settings, found, options.log, providerOf);
    bus.emit('model:catalog_loaded', { providerCount: built.providers.length, modelCount: built.list.length, timestamp: clock.now() });
    return built;
  }

  const keysIn = (provider: string): ProviderKeys => catalog.found.find(({ id }) => id === provider)?.keys ?? noKey;
  const keysOf = (model: ModelInfo): ProviderKeys => providerOf.get(model)?.keys ?? keysIn(model.provider);
  const modelsIn = ({ id }: FoundProvider) => catalog.list.filter(({ provider }) => provider === id);

  async function attempt(provider: FoundProvider, key: ProviderKey, request: Pick<ModelRequest, 'model' | 'maxTokens' | 'signal'>): Promise<Attempt> {
    const { model } = request;
    const startedAtMs = clock.now();
    const begun = clock.monotonic();
    const { maxAnswerBytes } = catalog.settings.modelsConfig;
    const tried = (how: Pick<Attempt, 'outcome' | 'error'>, usage: ModelUsage) => ({
      model,
      usage,
      latencyMs: clock.monotonic() - begun,
      startedAtMs,
      ...how,
    });
    try {
      const { usage } = await clients.use(provider, (client) => client.generate({ ...trialRequest, ...request, maxAnswerBytes }, undefined, key.at));
      return tried({ outcome: 'ok' }, usage);
    } catch (thrown) {
      const error = asModelError(thrown, provider.id, options.hideSecrets);
      return tried({ outcome: 'error', error }, error.partial?.usage ?? error.usage ?? nothingUsed);
    }
  }

  async function refresh(provider: FoundProvider, signal: AbortSignal) {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(listLimitMs)]);
    try {
      const listed = await requestModels(provider.config, provider.keys[0].value, options.probe ?? probeHttp, limit);
      askedAtMs.set(provider.id, clock.now());
      keepListed(provider, listed);
      return { listed: listed.map(({ id }) => id) };
    } catch (error) {
      const fault = error instanceof Error ? error.message : String(error);
      return {
        listed: [],
        fault: cleanMessage(
          options.hideSecrets?.(fault) ?? fault,
          provider.keys.map(({ value }) => value ?? ''),
        ),
      };
    }
  }

  /** Adds listed models to the catalog, unless the provider was replaced meanwhile. */
  function keepListed(provider: FoundProvider, listed: readonly ListedModel[]): void {
    const isKept = listed.length > 0 && provider.config.models.length === 0 && !isDeepStrictEqual(provider.listed, listed);
    if (!isKept || !catalog.found.includes(provider)) return;
    catalog = toCatalog(
      catalog.settings,
      catalog.found.map((one) => (one === provider ? { ...provider, listed } : one)),
    );
    clients.retire();
  }

  const generate = createGenerate({
    call(model, key, request, sink) {
      if (model.provider === offlineModel.provider) return offline.generate(request, sink);
      const provider = providerOf.get(model) ?? catalog.found.find(({ id }) => id === model.provider);
      if (provider === undefined) throw new ModelError('bad_request', `Provider "${model.provider}" is no longer configured`);
      return clients.use(provider, (client) => client.generate(request, sink, key.at));
    },
    keysOf,
    states,
    maxAnswerBytes: () => catalog.settings.modelsConfig.maxAnswerBytes,
    bus,
    clock,
    ...(options.hideSecrets !== undefined && { hideSecrets: options.hideSecrets }),
  });
  function vendorOf(model: ModelInfo): Vendor | undefined {
    const provider = providerOf.get(model) ?? catalog.found.find(({ id }) => id === model.provider);
    return provider && vendors[provider.config.type];
  }
  return {
    providers: () => catalog.providers,
    list: () => catalog.list,
    resolve: (name, preferredProvider) => catalog.resolve(name, preferredProvider),
    defaultModel: () => catalog.byDefault,
    unsupported: (model, asked) => findUnsupported(model, vendorOf(model) ?? offlineLimits, asked),
    effortsOf(model) {
      const vendor = vendorOf(model);
      return vendor !== undefined && hasEfforts(model, vendor) ? AnswerEffort.options : [];
    },
    generate,
    states: () => catalog.providers.map(({ id }) => states.stateOf(id, keysIn(id))),
    clearState: (provider) => states.clear(provider, keysIn(provider)),
    clearKey: (provider, id) =>
      states.clear(
        provider,
        keysIn(provider).filter((key) => key.id === id),
        false,
      ),
    watch: (model) => states.watch(model),
    onRecovered: (listener) => states.onRecovered(listener),
    describeDiscovery: () => catalog.discovery,
    describeProviders: () =>
      catalog.found.map((provider) => ({
        id: provider.id,
        source: provider.source,
        type: provider.config.type,
        baseUrl: provider.config.baseUrl ?? '',
        state: states.stateOf(provider.id, provider.keys),
        keys: provider.keys
          .filter(({ value }) => value !== undefined)
          .map((key) => ({ id: key.id, name: key.name, state: states.stateOfKey(provider.id, key) })),
        models: modelsIn(provider).map((model) => ({ ...model, origin: originOf(provider, model) })),
        listedAtMs: askedAtMs.get(provider.id),
      })),
    costOriginOf(model) {
      const provider = providerOf.get(model);
      return provider === undefined ? { source: 'local' } : originOf(provider, model).cost;
    },
    refresh: async (id, signal) => {
      const provider = catalog.found.find((one) => one.id === id);
      return provider === undefined ? undefined : refresh(provider, signal);
    },
    async refreshStale(signal) {
      const isStale = ({ id, config }: FoundProvider) =>
        config.models.length === 0 && vendors[config.type].modelsPath !== null && clock.now() - (askedAtMs.get(id) ?? 0) >= staleMs;
      if (!catalog.settings.modelsConfig.fetch) return;
      for (const provider of catalog.found.filter(isStale)) if (!signal.aborted) await refresh(provider, signal);
    },
    async prepareTrial(target, choice, signal) {
      const isCandidate = typeof target !== 'string';
      const provider = isCandidate ? candidateOf(target) : catalog.found.find(({ id }) => id === target);
      if (provider === undefined) return undefined;
      const { keys } = provider;
      const named = choice.key === undefined ? [] : keys.filter(({ id }) => id === choice.key);
      const [first = keys[0]] = named;
      if (choice.key !== undefined && named.length === 0) return undefined;
      const listed = await listForTrial(provider, first, probeHttp, signal);
      const model = modelForTrial(provider, { asked: choice.model, listed, known: isCandidate ? modelsOf(provider) : modelsIn(provider) });
      const calling = { model, keys, agentId: '', caller: '', isExplicit: true };
      const key = choice.key === undefined ? (states.chooseKey(calling) ?? first) : first;
      return {
        provider: provider.id,
        key,
        model,
        listed: listed.map(({ id }) => id),
        async call(maxTokens, callSignal) {
          const tried = await attempt(provider, key, { model, maxTokens, signal: callSignal });
          if (tried.outcome === 'ok' && !isCandidate) states.succeeded(model, key);
          if (!isCandidate) keepListed(provider, listed);
          return tried;
        },
      };
    },
    async reconfigure(settings) {
      const before = catalog;
      catalog = await build(settings, before);
      clients.retire();
      // Waiting work tries the new address or key, or ends because the provider is gone.
      for (const provider of before.found) {
        if (catalog.found.includes(provider)) continue;
        states.clear(provider.id, provider.keys);
        askedAtMs.delete(provider.id);
      }
    },
    async [Symbol.asyncDispose]() {
      await clients[Symbol.asyncDispose]();
      await offline[Symbol.asyncDispose]();
    },
  };
}

function buildCatalog(settings: ModelSettings, found: readonly FoundProvider[], log: Log, providerOf: WeakMap<ModelInfo, FoundProvider>): Catalog {
  const { default: wanted } = settings.modelsConfig;
  const entries = found.map((provider) => {
    const models = withNamed(provider, modelsOf(provider), [...(settings.named ?? []), ...(wanted === undefined ? [] : [wanted])]);
    for (const model of models) providerOf.set(model, provider);
    return { provider, models };
  });
  for (const { provider, models } of entries)
    if (models.length === 0)
      log.warn({ provider: provider.id }, `Provider "${provider.id}" has no models: name them under providers.${provider.id}.models`);
  const listed = entries.flatMap(({ models }) => models);
  const offline = listed.length === 0;
  const list: readonly ModelInfo[] = offline ? [offlineModel] : listed;
  const resolve = resolver(list);
  const byDefault = wanted === undefined ? list[0] : resolve(wanted);
  if (byDefault === undefined) throw new Error(`models.default: expected a model of the catalog, got "${wanted ?? ''}"`);
  return {
    settings,
    found,
    providers: [...entries.map(({ provider }) => providerInfo(provider)), ...(offline ? [offlineProvider] : [])],
    list,
    resolve,
    byDefault,
    discovery: {
      providers: [
        ...entries.map(({ provider, models }) => ({
          id: provider.id,
          name: vendors[provider.config.type].name,
          source: provider.source,
          from: provider.from,
          modelCount: models.length,
        })),
        ...(offline ? [{ id: 'offline', name: offlineModel.displayName, source: 'built_in' as const, from: 'built in', modelCount: 1 }] : []),
      ],
      defaultModel: `${byDefault.provider}/${byDefault.modelId}`,
    },
  };
}

const offlineProvider: ProviderInfo = { id: 'offline', type: 'offline', baseUrl: '', source: 'built_in', apiKeyConfigured: true };

/** Finds the providers, those of the configuration first; those of `known` that have not changed stay the same objects. */
async function findProviders(
  { providers, modelsConfig, env, probe, log }: CreateModelsOptions,
  known: readonly FoundProvider[],
): Promise<readonly FoundProvider[]> {
  const configured = await Promise.all(Object.entries(providers).map(([id, config]) => findConfigured(id, config, probe, known)));
  if (!modelsConfig.discover) return configured;
  const keys = findKeys(env, log)
    .filter((found) => !configured.some((one) => isCovered(found, one)))
    .map((found) => known.find(({ from, config }) => from === found.from && isDeepStrictEqual(config, found.config)) ?? found);
  const connected = [...configured, ...keys];
  if (configured.length > 0) return connected;
  if (known.length > 0 && known.every(({ source }) => source !== 'config'))
    return [...connected, ...known.filter(({ source }) => source === 'local_server')];
  return [...connected, ...(probe === undefined ? [] : await findLocalServers(probe))];
}

/** Whether a key of the environment is in use: its vendor is configured, or the key itself, which may be meant for another address. */
function isCovered({ id, config, keys }: FoundProvider, configured: FoundProvider): boolean {
  return configured.id === id || configured.config.type === config.type || configured.keys.some(({ value }) => value === keys[0].value);
}

async function findConfigured(
  id: string,
  config: ProvidersConfig[string],
  probe: Probe | undefined,
  known: readonly FoundProvider[],
): Promise<FoundProvider> {
  const same = known.find((provider) => provider.id === id && provider.given === config);
  if (same !== undefined) return same;
  const baseUrl = config.baseUrl ?? vendors[config.type].baseUrl;
  if (baseUrl === undefined)
    throw new Error(`providers.${id}.baseUrl: expected the address of the API, because type "${config.type}" has no default`);
  const found = {
    id,
    given: config,
    config: { ...config, baseUrl },
    source: 'config' as const,
    from: 'config.yaml',
    keys: providerKeys(config, (key) => `providers.${id}.${key}`),
  };
  return config.models.length > 0 || probe === undefined ? found : { ...found, listed: await listConfigured(config, probe) };
}

function providerInfo({ id, config, source }: FoundProvider): ProviderInfo {
  // A local server needs no key, so none is missing.
  return {
    id,
    type: config.type,
    baseUrl: config.baseUrl ?? '',
    source,
    apiKeyConfigured: keyValues(config).length > 0 || vendors[config.type].local !== undefined,
  };
}

function withNamed(provider: FoundProvider, models: readonly ModelInfo[], named: readonly string[]): readonly ModelInfo[] {
  if (provider.config.models.length > 0) return models;
  const prefix = `${provider.id}/`;
  const ids = named.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  return [
    ...models,
    ...[...new Set(ids)].filter((id) => id !== '' && !models.some((model) => model.modelId === id)).map((id) => unlistedModel(provider, id)),
  ];
}

function resolver(list: readonly ModelInfo[]): Models['resolve'] {
  const byName = new Map(list.map((model) => [`${model.provider}/${model.modelId}`, model]));
  return (name, preferredProvider) =>
    byName.get(name) ??
    (preferredProvider === undefined ? undefined : byName.get(`${preferredProvider}/${name}`)) ??
    list.find((model) => model.modelId === name);
}

function createClient({ id, config, keys }: FoundProvider, { clock }: CreateModelsOptions): ModelClient {
  const vendor = vendors[config.type];
  const upstream = new Upstream({
    provider: id,
    baseUrl: config.baseUrl ?? '',
    headers: keys.map(({ value }) => providerHeaders(config, value)),
    secrets: [...keys.map(({ value }) => value ?? ''), ...Object.values(config.headers)],
    maxConnections: config.maxConnections,
    clock,
  });
  const { fastStreams } = config;
  return vendor.wire === 'anthropic-messages' ? createMessagesClient(upstream, fastStreams) : createChatClient(upstream, vendor, fastStreams);
}
