import type { ProviderType } from '@gatehouse/contract';
import type { ModelPrice } from './model.ts';

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
}

type Row = readonly [
  id: string,
  displayName: string,
  contextWindow: number,
  maxTokens: number,
  traits: string,
  price: readonly [input: number, output: number, cacheRead?: number, cacheWrite?: number] | null,
];

const seesAndReasons = 'vision reasoning';
const sees = 'vision';
const reasons = 'reasoning';
const plain = '';

/**
 * By vendor, the default first. Prices in US dollars per million tokens. Where a vendor charges more above a prompt
 * length, the window ends at that length, so that the price is right.
 */
const rows: Partial<Record<ProviderType, readonly Row[]>> = {
  openai: [
    ['gpt-5-mini', 'GPT-5 mini', 400_000, 128_000, seesAndReasons, [0.25, 2, 0.025]],
    ['gpt-5', 'GPT-5', 400_000, 128_000, seesAndReasons, [1.25, 10, 0.125]],
    ['gpt-5.1', 'GPT-5.1', 400_000, 128_000, seesAndReasons, [1.25, 10, 0.125]],
    ['gpt-5.2', 'GPT-5.2', 400_000, 128_000, seesAndReasons, [1.75, 14, 0.175]],
    ['gpt-5-nano', 'GPT-5 nano', 400_000, 128_000, seesAndReasons, [0.05, 0.4, 0.005]],
    ['gpt-4.1', 'GPT-4.1', 1_047_576, 32_768, sees, [2, 8, 0.5]],
    ['gpt-4.1-mini', 'GPT-4.1 mini', 1_047_576, 32_768, sees, [0.4, 1.6, 0.1]],
    ['gpt-4.1-nano', 'GPT-4.1 nano', 1_047_576, 32_768, sees, [0.1, 0.4, 0.025]],
    ['gpt-4o', 'GPT-4o', 128_000, 16_384, sees, [2.5, 10, 1.25]],
    ['gpt-4o-mini', 'GPT-4o mini', 128_000, 16_384, sees, [0.15, 0.6, 0.075]],
    ['o3', 'o3', 200_000, 100_000, seesAndReasons, [2, 8, 0.5]],
    ['o4-mini', 'o4-mini', 200_000, 100_000, seesAndReasons, [1.1, 4.4, 0.275]],
  ],
  anthropic: [
    ['claude-sonnet-4-5', 'Claude Sonnet 4.5', 200_000, 64_000, seesAndReasons, [3, 15, 0.3, 3.75]],
    ['claude-opus-4-5', 'Claude Opus 4.5', 200_000, 64_000, seesAndReasons, [5, 25, 0.5, 6.25]],
    ['claude-haiku-4-5', 'Claude Haiku 4.5', 200_000, 64_000, seesAndReasons, [1, 5, 0.1, 1.25]],
    ['claude-opus-4-1', 'Claude Opus 4.1', 200_000, 32_000, seesAndReasons, [15, 75, 1.5, 18.75]],
  ],
  google: [
    ['gemini-2.5-flash', 'Gemini 2.5 Flash', 1_048_576, 65_536, seesAndReasons, [0.3, 2.5, 0.075]],
    ['gemini-2.5-pro', 'Gemini 2.5 Pro', 200_000, 65_536, seesAndReasons, [1.25, 10, 0.31]],
    ['gemini-2.5-flash-lite', 'Gemini 2.5 Flash-Lite', 1_048_576, 65_536, seesAndReasons, [0.1, 0.4, 0.025]],
  ],
  mistral: [
    ['mistral-medium-latest', 'Mistral Medium', 128_000, 8192, sees, null],
    ['mistral-large-latest', 'Mistral Large', 128_000, 8192, sees, null],
    ['mistral-small-latest', 'Mistral Small', 128_000, 8192, sees, null],
    ['codestral-latest', 'Codestral', 128_000, 8192, plain, null],
  ],
  groq: [
    ['llama-3.3-70b-versatile', 'Llama 3.3 70B', 131_072, 32_768, plain, [0.59, 0.79]],
    ['llama-3.1-8b-instant', 'Llama 3.1 8B', 131_072, 131_072, plain, [0.05, 0.08]],
    ['openai/gpt-oss-120b', 'GPT-OSS 120B', 131_072, 32_768, reasons, null],
    ['openai/gpt-oss-20b', 'GPT-OSS 20B', 131_072, 32_768, reasons, null],
  ],
  xai: [
    ['grok-4', 'Grok 4', 128_000, 64_000, seesAndReasons, [3, 15, 0.75]],
    ['grok-3', 'Grok 3', 131_072, 16_384, plain, [3, 15, 0.75]],
    ['grok-3-mini', 'Grok 3 mini', 131_072, 16_384, reasons, [0.3, 0.5, 0.075]],
  ],
  openrouter: [
    ['openai/gpt-5-mini', 'GPT-5 mini', 400_000, 128_000, seesAndReasons, [0.25, 2, 0.025]],
    ['openai/gpt-5', 'GPT-5', 400_000, 128_000, seesAndReasons, [1.25, 10, 0.125]],
    ['anthropic/claude-sonnet-4.5', 'Claude Sonnet 4.5', 200_000, 64_000, seesAndReasons, [3, 15, 0.3, 3.75]],
    ['google/gemini-2.5-flash', 'Gemini 2.5 Flash', 1_048_576, 65_536, seesAndReasons, [0.3, 2.5, 0.075]],
    ['openrouter/auto', 'Auto', 128_000, 8192, plain, null],
  ],
  deepseek: [
    ['deepseek-chat', 'DeepSeek Chat', 128_000, 8192, plain, [0.28, 0.42, 0.028]],
    ['deepseek-reasoner', 'DeepSeek Reasoner', 128_000, 32_768, reasons, [0.28, 0.42, 0.028]],
  ],
  together: [['meta-llama/Llama-3.3-70B-Instruct-Turbo', 'Llama 3.3 70B', 131_072, 8192, plain, null]],
  fireworks: [['accounts/fireworks/models/llama-v3p3-70b-instruct', 'Llama 3.3 70B', 131_072, 8192, plain, null]],
  cerebras: [
    ['llama-3.3-70b', 'Llama 3.3 70B', 65_536, 8192, plain, null],
    ['gpt-oss-120b', 'GPT-OSS 120B', 65_536, 8192, reasons, null],
  ],
  perplexity: [
    ['sonar', 'Sonar', 128_000, 8192, plain, null],
    ['sonar-pro', 'Sonar Pro', 200_000, 8192, plain, null],
  ],
  moonshot: [['kimi-k2-0905-preview', 'Kimi K2', 262_144, 16_384, plain, null]],
};

/** Returns the models of a vendor, the default first; empty for servers that each have their own. */
export function knownModels(type: ProviderType): readonly KnownModel[] {
  return (rows[type] ?? []).map(toKnown);
}

/** Returns the facts about one model id; dated versions (`gpt-4o-2024-08-06`, `claude-haiku-4-5-20251001`) share those of the plain id. */
export function knownModel(type: ProviderType, id: string): KnownModel | undefined {
  const plainId = id.replace(/-(?:\d{8}|\d{4}-\d{2}-\d{2})$/, '');
  const row = rows[type === 'azure' ? 'openai' : type]?.find(([candidate]) => candidate === id || candidate === plainId);
  return row === undefined ? undefined : { ...toKnown(row), id, displayName: row[0] === id ? row[1] : id };
}

function toKnown([id, displayName, contextWindow, maxTokens, traits, price]: Row): KnownModel {
  return {
    id,
    displayName,
    contextWindow,
    maxTokens,
    vision: traits.includes(sees),
    reasoning: traits.includes(reasons),
    price: price === null ? null : { input: price[0], output: price[1], cacheRead: price[2] ?? price[0], cacheWrite: price[3] ?? price[0] },
  };
}
