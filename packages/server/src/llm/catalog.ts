import type { ProviderConfig } from './config.ts';
import type { FoundProvider } from './discover.ts';
import { type KnownModel, knownModel, knownModels } from './known-models.ts';
import type { ModelInfo, ModelPrice } from './model.ts';
import { vendors } from './vendors.ts';

const defaultContextWindow = 128_000;
const defaultMaxTokens = 8192;

/** Returns the models of one provider in order: those of its configuration, else those it listed itself, else its vendor's built-in table. */
export function modelsOf(provider: FoundProvider): readonly ModelInfo[] {
  const { id, config, listed } = provider;
  if (config.models.length > 0) return config.models.map((model) => fromConfig(id, config, model));
  if (listed !== undefined && listed.length > 0) return listed.map((model) => fromListing(id, config, model));
  return knownModels(config.type).map((known) => ({ ...described(id, config, known.id, known), validated: false }));
}

/** Returns a model that is named but not listed; for vendors whose list is the built-in table, which becomes outdated. */
export function unlistedModel(provider: FoundProvider, modelId: string): ModelInfo {
  return { ...described(provider.id, provider.config, modelId, knownModel(provider.config.type, modelId)), validated: false };
}

function fromConfig(provider: string, config: ProviderConfig, model: ProviderConfig['models'][number]): ModelInfo {
  const info = described(provider, config, model.id, knownModel(config.type, model.id));
  return {
    ...info,
    displayName: model.displayName ?? info.displayName,
    contextWindow: model.contextWindow ?? info.contextWindow,
    maxTokens: model.maxTokens ?? info.maxTokens,
    input: model.input ?? info.input,
    reasoning: model.reasoning ?? info.reasoning,
    price: model.cost === undefined ? info.price : fullPrice(model.cost),
    validated: true,
  };
}

function fromListing(provider: string, config: ProviderConfig, model: { readonly id: string; readonly contextWindow?: number }): ModelInfo {
  const info = described(provider, config, model.id, undefined);
  const contextWindow = model.contextWindow ?? info.contextWindow;
  // Models on the owner's machine are not billed by the token.
  return {
    ...info,
    contextWindow,
    maxTokens: Math.min(info.maxTokens, Math.max(256, contextWindow >> 1)),
    price: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    validated: true,
  };
}

function described(provider: string, config: ProviderConfig, modelId: string, known: KnownModel | undefined): ModelInfo {
  const defaults = vendors[config.type].defaults;
  return {
    provider,
    modelId,
    displayName: known?.displayName ?? modelId,
    contextWindow: known?.contextWindow ?? defaults?.contextWindow ?? defaultContextWindow,
    maxTokens: known?.maxTokens ?? defaults?.maxTokens ?? defaultMaxTokens,
    input: inputOf(known, config),
    reasoning: known?.reasoning ?? false,
    price: known?.price ?? null,
    validated: false,
  };
}

/** Sources of a model and of its price. */
export interface ModelOrigin {
  readonly source: 'config' | 'listed' | 'built_in' | 'named';
  readonly costSource: 'config' | 'built_in' | 'local' | null;
}

export function originOf({ config, listed }: FoundProvider, { modelId, price }: ModelInfo): ModelOrigin {
  const own = config.models.find(({ id }) => id === modelId);
  const isListed = own === undefined && listed?.some(({ id }) => id === modelId) === true;
  const isKnown = knownModel(config.type, modelId) !== undefined;
  return {
    source: own !== undefined ? 'config' : isListed ? 'listed' : isKnown ? 'built_in' : 'named',
    costSource: price === null ? null : own?.cost !== undefined ? 'config' : isListed ? 'local' : 'built_in',
  };
}

/** A vision model can read pages too, when its vendor accepts files in a message. */
function inputOf(known: KnownModel | undefined, config: ProviderConfig): ModelInfo['input'] {
  if (known?.vision !== true) return ['text'];
  return vendors[config.type].pdf === true ? ['text', 'image', 'pdf'] : ['text', 'image'];
}

/** Cache prices default to the price of plain input: never too low. */
function fullPrice(cost: {
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number | undefined;
  readonly cacheWrite?: number | undefined;
}): ModelPrice {
  return { input: cost.input, output: cost.output, cacheRead: cost.cacheRead ?? cost.input, cacheWrite: cost.cacheWrite ?? cost.input };
}
