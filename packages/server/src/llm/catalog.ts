import type { ProviderConfig } from './config.ts';
import { type FoundProvider, isLoopback } from './discover.ts';
import { type KnownModel, knownModel, knownModels } from './known-models.ts';
import type { ModelInfo, ModelPrice } from './model.ts';
import type { ListedModel } from './read-models.ts';
import { vendors } from './vendors.ts';

const defaultContextWindow = 128_000;
const defaultMaxTokens = 8192;

/**
 * Returns the models of one provider in order: those of its configuration, else those of its vendor's built-in table and the others that
 * it listed itself.
 */
export function modelsOf(provider: FoundProvider): readonly ModelInfo[] {
  const { id, config, listed = [] } = provider;
  if (config.models.length > 0) return config.models.map((model) => fromConfig(id, config, model));
  const known = knownModels(config.type).map((one) => {
    const listing = listed.find((model) => model.id === one.id);
    return listing === undefined ? described(id, config, one.id, one) : fromListing(id, config, listing);
  });
  const others = listed.filter((model) => !known.some(({ modelId }) => modelId === model.id));
  return [...known, ...others.map((model) => fromListing(id, config, model))];
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
    ...(model.tier !== undefined && { tier: model.tier }),
    validated: true,
  };
}

function fromListing(provider: string, config: ProviderConfig, model: ListedModel): ModelInfo {
  const known = knownModel(config.type, model.id);
  const info = described(provider, config, model.id, known);
  const contextWindow = model.contextWindow ?? info.contextWindow;
  return {
    ...info,
    displayName: known?.displayName ?? model.displayName ?? info.displayName,
    contextWindow,
    maxTokens: Math.min(info.maxTokens, Math.max(256, contextWindow >> 1)),
    price: ownCost(config, model.id) === undefined ? (model.price ?? info.price ?? (isLocal(config) ? free : null)) : info.price,
    validated: true,
  };
}

/** Models on the owner's machine are not billed by the token. */
const free: ModelPrice = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const isLocal = ({ type, baseUrl }: ProviderConfig): boolean => vendors[type].local !== undefined || (baseUrl !== undefined && isLoopback(baseUrl));

function ownCost({ models, prices }: ProviderConfig, modelId: string) {
  return models.find(({ id }) => id === modelId)?.cost ?? prices?.[modelId];
}

function described(provider: string, config: ProviderConfig, modelId: string, known: KnownModel | undefined): ModelInfo {
  const defaults = vendors[config.type].defaults;
  const own = ownCost(config, modelId);
  return {
    provider,
    modelId,
    displayName: known?.displayName ?? modelId,
    contextWindow: known?.contextWindow ?? defaults?.contextWindow ?? defaultContextWindow,
    maxTokens: known?.maxTokens ?? defaults?.maxTokens ?? defaultMaxTokens,
    input: inputOf(known, config),
    reasoning: known?.reasoning ?? false,
    price: own === undefined ? (known?.price ?? null) : fullPrice(own),
    validated: false,
  };
}

/** Sources of a model and of its price. */
export interface ModelOrigin {
  readonly source: 'config' | 'listed' | 'built_in' | 'named';
  readonly cost: CostOrigin;
}

export interface CostOrigin {
  /** Null when the price is not known. */
  readonly source: 'config' | 'listed' | 'built_in' | 'local' | null;
  /** Day of a built-in price, and where its vendor publishes it. */
  readonly asOf?: string;
  readonly url?: string;
}

export function originOf({ config, listed }: FoundProvider, { modelId, price }: ModelInfo): ModelOrigin {
  const isOwn = config.models.some(({ id }) => id === modelId);
  const listing = listed?.find(({ id }) => id === modelId);
  const known = knownModel(config.type, modelId);
  const source = isOwn ? 'config' : listing !== undefined ? 'listed' : known !== undefined ? 'built_in' : 'named';
  return { source, cost: costOriginOf() };

  function costOriginOf(): CostOrigin {
    if (price === null) return { source: null };
    if (ownCost(config, modelId) !== undefined) return { source: 'config' };
    if (listing?.price !== undefined) return { source: 'listed' };
    return known?.priceOrigin === undefined ? { source: 'local' } : { source: 'built_in', ...known.priceOrigin };
  }
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
