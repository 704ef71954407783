import { modelsOf, unlistedModel } from './catalog.ts';
import { ProviderConfig } from './config.ts';
import { type FoundProvider, listModels, type Probe } from './discover.ts';
import type { ModelInfo } from './model.ts';
import type { Attempt } from './models.ts';
import { type ProviderKey, providerKeys } from './provider-keys.ts';
import { vendors } from './vendors.ts';

export const listLimitMs = 5_000;
const callLimitMs = 30_000;

/** A provider of the catalog by its id, or one that is not configured. */
export type TrialTarget = string | Pick<ProviderConfig, 'type' | 'baseUrl' | 'apiKey'>;

/** What a trial is made with; the rest is chosen. */
export interface TrialChoice {
  /** The provider's own name of a model. */
  readonly model?: string | undefined;
  /** Id of a key (`apiKeys[0]`). */
  readonly key?: string | undefined;
}

/** One call that shows whether a provider works. */
export interface Trial {
  readonly provider: string;
  readonly key: ProviderKey;
  readonly model: ModelInfo;
  /** Models for conversations that the provider lists; empty when it does not list any. */
  readonly listed: readonly string[];
  /** Calls the model, whatever earlier calls have shown. Never rejects. */
  call(maxTokens: number, signal: AbortSignal): Promise<Attempt>;
}

/** The conversation of a trial: as short as a call can be. */
export const trialMessages = [{ role: 'user', content: 'Reply with OK.' }] as const;
export const trialRequest = { system: [], messages: trialMessages, tools: [], cacheRetention: 'none', timeoutMs: callLimitMs } as const;

/** Returns a provider as if it were configured; its id is its type. Undefined when the type has no default address and none is set. */
export function candidateOf({ type, baseUrl, apiKey }: Exclude<TrialTarget, string>): FoundProvider | undefined {
  const address = baseUrl ?? vendors[type].baseUrl;
  if (address === undefined) return undefined;
  const config = ProviderConfig.parse({ type, baseUrl: address, ...(apiKey !== undefined && { apiKey }) });
  return { id: type, config, source: 'config', from: '', keys: providerKeys(config, () => '') };
}

/** Requests the models that a provider lists for a key. */
export async function listForTrial(
  { config }: FoundProvider,
  { value }: ProviderKey,
  probe: Probe,
  signal: AbortSignal,
): Promise<FoundProvider['listed'] & {}> {
  return listModels(config, value, probe, AbortSignal.any([signal, AbortSignal.timeout(listLimitMs)]));
}

/** Returns the model to call: the one asked for, else the first that the provider has. */
export function modelForTrial(
  provider: FoundProvider,
  {
    asked,
    known,
    listed,
  }: { readonly asked: string | undefined; readonly known: readonly ModelInfo[]; readonly listed: FoundProvider['listed'] & {} },
): ModelInfo {
  // Local models are free.
  const local = vendors[provider.config.type].local === undefined ? [] : modelsOf({ ...provider, listed });
  const models = [...known, ...local];
  if (asked !== undefined) return models.find(({ modelId }) => modelId === asked) ?? unlistedModel(provider, asked);
  const ids = listed.map(({ id }) => id);
  const has = ids.length === 0 || provider.config.models.length > 0 ? models[0] : models.find(({ modelId }) => ids.includes(modelId));
  // Without any name the answer still shows whether the address and the key are right.
  return has ?? unlistedModel(provider, ids[0] ?? 'default');
}
