import type { ParamsInput, Result } from '@gatehouse/contract';
import type { Client } from './client.ts';

type Provider = Result<'providers.list'>['providers'][number];

/** A provider as a person enters it. */
export interface ProviderEntry {
  readonly type: ParamsInput<'providers.set'>['type'];
  /** Absent for the address of the vendor, or for that of an existing provider. */
  readonly baseUrl?: string | undefined;
  /** Absent for none, or for that of an existing provider. */
  readonly key?: string | undefined;
}

/** An entry with its place in the configuration. */
export interface PlacedProvider extends ProviderEntry {
  readonly id: string;
  /** The provider of this type and address that exists already. */
  readonly existing: Provider | undefined;
}

const trimmed = (url: string) => url.replace(/\/+$/, '');

/** Finds the provider that an entry means, else an id for a new one. */
export function placeProvider(entry: ProviderEntry, providers: readonly Provider[]): PlacedProvider {
  const { type, baseUrl } = entry;
  const existing = providers.find((one) => one.type === type && (baseUrl === undefined || trimmed(one.baseUrl) === trimmed(baseUrl)));
  return { ...entry, existing, id: existing?.provider ?? freeId(type === 'openai-compatible' ? 'server' : type, providers) };
}

function freeId(wanted: string, providers: readonly Provider[]): string {
  for (let number = 1; ; number += 1) {
    const id = number === 1 ? wanted : `${wanted}-${number}`;
    if (!providers.some(({ provider }) => provider === id)) return id;
  }
}

/** Calls a model of it once, stored or not. */
export function testProvider(
  { call }: Pick<Client, 'call'>,
  { id, type, baseUrl, key, existing }: PlacedProvider,
  { model, signal }: { readonly model?: string | undefined; readonly signal?: AbortSignal } = {},
): Promise<Result<'providers.test'>> {
  const target = existing !== undefined && key === undefined ? { provider: id } : { candidate: { type, baseUrl, key } };
  return call('providers.test', { ...target, model }, { signal });
}

/** Stores a provider, when it is new or has another key, and makes its model the one of the default agent. Returns the name of a stored key. */
export async function selectModel(
  { call }: Pick<Client, 'call'>,
  { id, type, baseUrl, key, existing }: PlacedProvider,
  model: string,
): Promise<string | undefined> {
  const set = existing === undefined || key !== undefined ? await call('providers.set', { id, type, baseUrl, key }) : undefined;
  const name = `${id}/${model}`;
  await call('config.set', { section: 'models', key: 'default', value: name });
  // A model that the agent names itself wins over the default one.
  const { agentId } = await call('agent.getOperationModels', {});
  const { config } = await call('agents.get', { agentId });
  if (config.model !== undefined && config.model !== name) await call('agents.update', { agentId, config: { model: name } });
  return set?.key;
}
