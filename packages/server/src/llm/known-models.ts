import type { ProviderType } from '@gatehouse/contract';
import type { ModelPrice } from './model.ts';
import { vendorPrices } from './vendor-prices.ts';

/** Facts about a vendor's model; for providers that do not list models, and to complete listings. */
export interface KnownModel {
  readonly id: string;
  readonly displayName: string;
  readonly contextWindow: number;
  readonly maxTokens: number;
  readonly vision: boolean;
  readonly reasoning: boolean;
  /** Null when uncertain: a spending cap then refuses the model until the configuration states its price. */
  readonly price: ModelPrice | null;
  /** Day and place of the price. */
  readonly priceOrigin?: { readonly asOf: string; readonly url: string };
}

type Row = readonly [id: string, displayName: string, contextWindow: number, maxTokens: number, traits: string];

const seesAndReasons = 'vision reasoning';
const sees = 'vision';
const reasons = 'reasoning';
const plain = '';

/** Models by vendor, the default first. Where a vendor charges more above a prompt length, the window ends at that length (`vendor-prices.ts`). */
const rows: Partial<Record<ProviderType, readonly Row[]>> = {
  openai: [
    ['gpt-5-mini', 'GPT-5 mini', 400_000, 128_000, seesAndReasons],
    ['gpt-5', 'GPT-5', 400_000, 128_000, seesAndReasons],
    ['gpt-5.1', 'GPT-5.1', 400_000, 128_000, seesAndReasons],
    ['gpt-5.2', 'GPT-5.2', 400_000, 128_000, seesAndReasons],
    ['gpt-5-nano', 'GPT-5 nano', 400_000, 128_000, seesAndReasons],
    ['gpt-4.1', 'GPT-4.1', 1_047_576, 32_768, sees],
    ['gpt-4.1-mini', 'GPT-4.1 mini', 1_047_576, 32_768, sees],
    ['gpt-4.1-nano', 'GPT-4.1 nano', 1_047_576, 32_768, sees],
    ['gpt-4o', 'GPT-4o', 128_000, 16_384, sees],
    ['gpt-4o-mini', 'GPT-4o mini', 128_000, 16_384, sees],
    ['o3', 'o3', 200_000, 100_000, seesAndReasons],
    ['o4-mini', 'o4-mini', 200_000, 100_000, seesAndReasons],
  ],
  anthropic: [
    ['claude-sonnet-4-5', 'Claude Sonnet 4.5', 200_000, 64_000, seesAndReasons],
    ['claude-opus-4-5', 'Claude Opus 4.5', 200_000, 64_000, seesAndReasons],
    ['claude-haiku-4-5', 'Claude Haiku 4.5', 200_000, 64_000, seesAndReasons],
    ['claude-opus-4-1', 'Claude Opus 4.1', 200_000, 32_000, seesAndReasons],
  ],
  google: [
    ['gemini-2.5-flash', 'Gemini 2.5 Flash', 1_048_576, 65_536, seesAndReasons],
    ['gemini-2.5-pro', 'Gemini 2.5 Pro', 200_000, 65_536, seesAndReasons],
    ['gemini-2.5-flash-lite', 'Gemini 2.5 Flash-Lite', 1_048_576, 65_536, seesAndReasons],
  ],
  mistral: [
    ['mistral-medium-latest', 'Mistral Medium', 128_000, 8192, sees],
    ['mistral-large-latest', 'Mistral Large', 128_000, 8192, sees],
    ['mistral-small-latest', 'Mistral Small', 128_000, 8192, sees],
    ['codestral-latest', 'Codestral', 128_000, 8192, plain],
  ],
  groq: [
    ['llama-3.3-70b-versatile', 'Llama 3.3 70B', 131_072, 32_768, plain],
    ['llama-3.1-8b-instant', 'Llama 3.1 8B', 131_072, 131_072, plain],
    ['openai/gpt-oss-120b', 'GPT-OSS 120B', 131_072, 32_768, reasons],
    ['openai/gpt-oss-20b', 'GPT-OSS 20B', 131_072, 32_768, reasons],
  ],
  xai: [
    ['grok-4', 'Grok 4', 128_000, 64_000, seesAndReasons],
    ['grok-3', 'Grok 3', 131_072, 16_384, plain],
    ['grok-3-mini', 'Grok 3 mini', 131_072, 16_384, reasons],
  ],
  openrouter: [
    ['openai/gpt-5-mini', 'GPT-5 mini', 400_000, 128_000, seesAndReasons],
    ['openai/gpt-5', 'GPT-5', 400_000, 128_000, seesAndReasons],
    ['anthropic/claude-sonnet-4.5', 'Claude Sonnet 4.5', 200_000, 64_000, seesAndReasons],
    ['google/gemini-2.5-flash', 'Gemini 2.5 Flash', 1_048_576, 65_536, seesAndReasons],
    ['openrouter/auto', 'Auto', 128_000, 8192, plain],
  ],
  deepseek: [
    ['deepseek-chat', 'DeepSeek Chat', 128_000, 8192, plain],
    ['deepseek-reasoner', 'DeepSeek Reasoner', 128_000, 32_768, reasons],
  ],
  together: [['meta-llama/Llama-3.3-70B-Instruct-Turbo', 'Llama 3.3 70B', 131_072, 8192, plain]],
  fireworks: [['accounts/fireworks/models/llama-v3p3-70b-instruct', 'Llama 3.3 70B', 131_072, 8192, plain]],
  cerebras: [
    ['llama-3.3-70b', 'Llama 3.3 70B', 65_536, 8192, plain],
    ['gpt-oss-120b', 'GPT-OSS 120B', 65_536, 8192, reasons],
  ],
  perplexity: [
    ['sonar', 'Sonar', 128_000, 8192, plain],
    ['sonar-pro', 'Sonar Pro', 200_000, 8192, plain],
  ],
  moonshot: [['kimi-k2-0905-preview', 'Kimi K2', 262_144, 16_384, plain]],
};

/** Returns the models of a vendor, the default first; empty for servers that each have their own. */
export function knownModels(type: ProviderType): readonly KnownModel[] {
  return (rows[type] ?? []).map((row) => toKnown(type, row));
}

/** Returns the facts about one model id; dated versions (`gpt-4o-2024-08-06`, `claude-haiku-4-5-20251001`) share those of the plain id. */
export function knownModel(type: ProviderType, id: string): KnownModel | undefined {
  const plainId = id.replace(/-(?:\d{8}|\d{4}-\d{2}-\d{2})$/, '');
  const vendor = type === 'azure' ? 'openai' : type;
  const row = rows[vendor]?.find(([candidate]) => candidate === id || candidate === plainId);
  return row === undefined ? undefined : { ...toKnown(vendor, row), id, displayName: row[0] === id ? row[1] : id };
}

function toKnown(vendor: ProviderType, [id, displayName, contextWindow, maxTokens, traits]: Row): KnownModel {
  const prices = vendorPrices[vendor];
  const price = prices?.models[id];
  return {
    id,
    displayName,
    contextWindow,
    maxTokens,
    vision: traits.includes(sees),
    reasoning: traits.includes(reasons),
    price: price === undefined ? null : { input: price[0], output: price[1], cacheRead: price[2] ?? price[0], cacheWrite: price[3] ?? price[0] },
    ...(prices !== undefined && price !== undefined && { priceOrigin: { asOf: prices.asOf, url: prices.source } }),
  };
}
