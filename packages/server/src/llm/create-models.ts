import type { Clock } from '../kernel/clock.ts';
import type { EventBus } from '../kernel/event-bus.ts';
import type { Log } from '../kernel/log.ts';
import { anthropicVersion, createMessagesClient } from './anthropic-messages/client.ts';
import { modelsOf, unlistedModel } from './catalog.ts';
import type { ModelsConfig, ProvidersConfig } from './config.ts';
import { findKeys, findLocalServers, type FoundProvider, listConfigured, type Probe } from './discover.ts';
import { createGenerate } from './generate.ts';
import type { ModelClient, ModelInfo } from './model.ts';
import type { Models, ProviderInfo } from './models.ts';
import { createOfflineClient, offlineLimits, offlineModel } from './offline/offline.ts';
import { createChatClient } from './openai-chat/client.ts';
import { ProviderStates } from './provider-states.ts';
import { findUnsupported } from './unsupported.ts';
import { vendors } from './vendors.ts';
import { Upstream } from './wire/upstream.ts';

export interface CreateModelsOptions {
  readonly providers: ProvidersConfig;
  readonly modelsConfig: ModelsConfig;
  /** Variables searched for keys; the process environment in the daemon, empty in tests. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Probes local servers; when undefined, none are searched for. */
  readonly probe: Probe | undefined;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  /** Removes every live secret from a provider's message: it may repeat more than the key that it was sent. */
  readonly hideSecrets?: (text: string) => string;
  /** Models that agents name (`provider/modelId`): added to providers that list no models themselves. */
  readonly named?: readonly string[];
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

/** Builds the catalog and its clients. Fails with an Error that names the configuration key. */
export async function createModels(options: CreateModelsOptions): Promise<Models & { describeDiscovery(): Discovery }> {
  const { modelsConfig, bus, clock, log } = options;
  const found = await findProviders(options);
  const entries = found.map((provider) => ({
    provider,
    models: withNamed(provider, modelsOf(provider), [
      ...(options.named ?? []),
      ...(modelsConfig.default === undefined ? [] : [modelsConfig.default]),
    ]),
  }));
  for (const { provider, models } of entries)
    if (models.length === 0)
      log.warn({ provider: provider.id }, `Provider "${provider.id}" has no models: name them under providers.${provider.id}.models`);
  const listed = entries.flatMap(({ models }) => models);
  const offline = listed.length === 0;
  const list: readonly ModelInfo[] = offline ? [offlineModel] : listed;
  const providers: readonly ProviderInfo[] = [...entries.map(({ provider }) => providerInfo(provider)), ...(offline ? [offlineProvider] : [])];
  const resolve = resolver(list);
  const byDefault = modelsConfig.default === undefined ? list[0] : resolve(modelsConfig.default);
  if (byDefault === undefined) throw new Error(`models.default: expected a model of the catalog, got "${modelsConfig.default ?? ''}"`);

  const clients = new Map<string, ModelClient>();
  const clientOf = (id: string): ModelClient => {
    let client = clients.get(id);
    if (client === undefined) {
      const provider = found.find((candidate) => candidate.id === id);
      client = provider === undefined ? createOfflineClient() : createClient(provider, options);
      clients.set(id, client);
    }
    return client;
  };
  const states = new ProviderStates(bus, clock, modelsConfig.cooldownMs);
  const generate = createGenerate({
    clientOf,
    keyNameOf: (id) => found.find((provider) => provider.id === id)?.keyName ?? '',
    states,
    maxAnswerBytes: modelsConfig.maxAnswerBytes,
    bus,
    clock,
    ...(options.hideSecrets !== undefined && { hideSecrets: options.hideSecrets }),
  });
  bus.emit('model:catalog_loaded', { providerCount: providers.length, modelCount: list.length, timestamp: clock.now() });
  return {
    providers: () => providers,
    list: () => list,
    resolve,
    defaultModel: () => byDefault,
    unsupported(model, asked) {
      const provider = found.find(({ id }) => id === model.provider);
      return findUnsupported(model, provider === undefined ? offlineLimits : vendors[provider.config.type], asked);
    },
    generate,
    states: () => providers.map(({ id }) => states.stateOf(id)),
    clearState: (provider) => states.clear(provider),
    watch: (model) => states.watch(model),
    onRecovered: (listener) => states.onRecovered(listener),
    describeDiscovery: () => ({
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
    }),
    async [Symbol.asyncDispose]() {
      await Promise.all([...clients.values()].map((client) => client[Symbol.asyncDispose]()));
    },
  };
}

const offlineProvider: ProviderInfo = { id: 'offline', type: 'offline', baseUrl: '', source: 'built_in', apiKeyConfigured: true };

async function findProviders({ providers, modelsConfig, env, probe, log }: CreateModelsOptions): Promise<readonly FoundProvider[]> {
  const configured = Object.entries(providers);
  if (configured.length === 0) {
    if (!modelsConfig.discover) return [];
    return [...findKeys(env, log), ...(probe === undefined ? [] : await findLocalServers(probe))];
  }
  return Promise.all(
    configured.map(async ([id, config]): Promise<FoundProvider> => {
      const baseUrl = config.baseUrl ?? vendors[config.type].baseUrl;
      if (baseUrl === undefined)
        throw new Error(`providers.${id}.baseUrl: expected the address of the API, because type "${config.type}" has no default`);
      const found = { id, config: { ...config, baseUrl }, source: 'config' as const, from: 'config.yaml', keyName: `providers.${id}.apiKey` };
      return config.models.length > 0 || probe === undefined ? found : { ...found, listed: await listConfigured(config, probe) };
    }),
  );
}

function providerInfo({ id, config, source }: FoundProvider): ProviderInfo {
  // A local server needs no key, so none is missing.
  return {
    id,
    type: config.type,
    baseUrl: config.baseUrl ?? '',
    source,
    apiKeyConfigured: config.apiKey !== undefined || vendors[config.type].local !== undefined,
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

function createClient({ id, config }: FoundProvider, { clock }: CreateModelsOptions): ModelClient {
  const vendor = vendors[config.type];
  const upstream = new Upstream({
    provider: id,
    baseUrl: config.baseUrl ?? '',
    headers: providerHeaders(config),
    secrets: [config.apiKey ?? '', ...Object.values(config.headers)],
    maxConnections: config.maxConnections,
    clock,
  });
  const { fastStreams } = config;
  return vendor.wire === 'anthropic-messages' ? createMessagesClient(upstream, fastStreams) : createChatClient(upstream, vendor, fastStreams);
}

/** Returns the headers of every request to a provider; those of the configuration win. Names are lower-case, so that none is sent twice. */
export function providerHeaders(config: ProvidersConfig[string]): Record<string, string> {
  const vendor = vendors[config.type];
  const key =
    config.apiKey === undefined ? {} : { [vendor.keyHeader]: vendor.keyHeader === 'authorization' ? `Bearer ${config.apiKey}` : config.apiKey };
  const own = Object.fromEntries(Object.entries(config.headers).map(([name, value]) => [name.toLowerCase(), value]));
  return { ...(vendor.wire === 'anthropic-messages' ? anthropicVersion : {}), ...key, ...own };
}
