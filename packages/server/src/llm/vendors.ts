import type { ProviderType } from '@gatehouse/contract';
import type { ModelOptions } from './model.ts';
import type { ToolCallIdRule } from './wire/tool-call-id.ts';

/** What a vendor may not support: an option of a call, one of its forms, or tools altogether. */
export type ModelLimit =
  | Exclude<keyof ModelOptions, 'responseFormat' | 'endUser' | 'thinking' | 'effort' | 'depth' | 'systemCacheMark'>
  | 'tools'
  | 'jsonObject'
  | 'jsonSchema';

/** How one vendor differs from the wire that it speaks; facts only, read by the clients. */
export interface Vendor {
  readonly name: string;
  readonly wire: 'openai-chat' | 'anthropic-messages';
  /** Undefined when every installation has its own. */
  readonly baseUrl: string | undefined;
  /** Environment variables that hold a key, first found wins; in the vendor's own spelling. */
  readonly keyEnv: readonly string[];
  /** Environment variable of the vendor's own tools that overrides the base URL. */
  readonly baseUrlEnv?: string;
  /** Below the base URL, `/models` by default; null when it lists no models that can be called by these names. */
  readonly modelsPath?: string | null;
  /** A local server, needs no key. */
  readonly local?: { readonly port: number };
  readonly keyHeader: 'authorization' | 'api-key' | 'x-api-key';
  /** `stream_options.include_usage` is supported; others send usage unasked or not at all. */
  readonly streamOptions: boolean;
  /** `stream_options.include_obfuscation: false` is supported: it omits padding that makes each frame different. */
  readonly obfuscation?: true;
  readonly maxTokensField: 'max_tokens' | 'max_completion_tokens';
  readonly toolCallId: ToolCallIdRule;
  /** What it would silently ignore, or refuse for every model; a caller that asks for it is refused before the call. */
  readonly limits?: readonly ModelLimit[];
  /** `top_k` is supported. */
  readonly topK?: true;
  /** The vendor's own field names. */
  readonly seedField?: 'random_seed';
  readonly requiredToolChoice?: 'any';
  /** `user` is supported; the end user's id changes no answer, so otherwise it is not sent. */
  readonly endUser: boolean;
  /** Accepts `cache_control` on parts of messages. */
  readonly cacheControl?: true;
  /** Field of assistant messages in which a model’s reasoning is sent back to it. */
  readonly reasoningField?: 'reasoning_content' | 'reasoning';
  /** Vision models also read PDF files in a message. */
  readonly pdf?: true;
  /** A router that can be restricted to providers that support the requested parameters. */
  readonly requireParameters?: true;
  /** Models that accept only the default temperature: it is omitted, any other is refused by the vendor. */
  readonly fixedTemperature?: RegExp;
  /** Embeddings are offered; base64 is requested where it is supported. */
  readonly embeddings: 'base64' | 'float' | 'none';
  /** Defaults for models without known facts. */
  readonly defaults?: { readonly contextWindow: number; readonly maxTokens: number };
}

const openAiStyle = {
  wire: 'openai-chat',
  keyHeader: 'authorization',
  streamOptions: true,
  maxTokensField: 'max_tokens',
  toolCallId: 'any',
  endUser: true,
  embeddings: 'float',
} as const;
const reasoningModels = /^(?:o\d|gpt-5)/;

export const vendors: Readonly<Record<ProviderType, Vendor>> = {
  'openai-compatible': { ...openAiStyle, name: 'OpenAI-compatible server', baseUrl: undefined, keyEnv: [], embeddings: 'base64' },
  openai: {
    ...openAiStyle,
    name: 'OpenAI',
    baseUrl: 'https://api.openai.com/v1',
    keyEnv: ['OPENAI_API_KEY'],
    baseUrlEnv: 'OPENAI_BASE_URL',
    obfuscation: true,
    maxTokensField: 'max_completion_tokens',
    fixedTemperature: reasoningModels,
    pdf: true,
    embeddings: 'base64',
  },
  anthropic: {
    name: 'Anthropic',
    wire: 'anthropic-messages',
    baseUrl: 'https://api.anthropic.com/v1',
    keyEnv: ['ANTHROPIC_API_KEY'],
    baseUrlEnv: 'ANTHROPIC_BASE_URL',
    keyHeader: 'x-api-key',
    modelsPath: '/models?limit=1000',
    streamOptions: false,
    maxTokensField: 'max_tokens',
    toolCallId: 'word',
    // Its reasoning needs its own blocks back with the next call, and only /v1/messages carries those.
    limits: ['seed', 'presencePenalty', 'frequencyPenalty', 'jsonObject', 'reasoningEffort'],
    topK: true,
    endUser: true,
    pdf: true,
    embeddings: 'none',
  },
  google: {
    ...openAiStyle,
    name: 'Google Gemini',
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta/openai',
    keyEnv: ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY'],
  },
  // Refuses unknown fields; reports usage in the last chunk unasked.
  mistral: {
    ...openAiStyle,
    name: 'Mistral',
    baseUrl: 'https://api.mistral.ai/v1',
    keyEnv: ['MISTRAL_API_KEY'],
    streamOptions: false,
    toolCallId: 'alnum9',
    limits: ['reasoningEffort'],
    seedField: 'random_seed',
    requiredToolChoice: 'any',
    endUser: false,
  },
  groq: {
    ...openAiStyle,
    name: 'Groq',
    baseUrl: 'https://api.groq.com/openai/v1',
    keyEnv: ['GROQ_API_KEY'],
    maxTokensField: 'max_completion_tokens',
    limits: ['presencePenalty', 'frequencyPenalty'],
    embeddings: 'none',
  },
  xai: { ...openAiStyle, name: 'xAI', baseUrl: 'https://api.x.ai/v1', keyEnv: ['XAI_API_KEY'] },
  openrouter: {
    ...openAiStyle,
    name: 'OpenRouter',
    baseUrl: 'https://openrouter.ai/api/v1',
    keyEnv: ['OPENROUTER_API_KEY'],
    pdf: true,
    cacheControl: true,
    reasoningField: 'reasoning',
    requireParameters: true,
    topK: true,
  },
  deepseek: {
    ...openAiStyle,
    name: 'DeepSeek',
    baseUrl: 'https://api.deepseek.com/v1',
    keyEnv: ['DEEPSEEK_API_KEY'],
    limits: ['seed', 'jsonSchema', 'parallelToolCalls', 'reasoningEffort'],
    reasoningField: 'reasoning_content',
    endUser: false,
    embeddings: 'none',
  },
  together: { ...openAiStyle, name: 'Together', baseUrl: 'https://api.together.xyz/v1', keyEnv: ['TOGETHER_API_KEY'], topK: true },
  fireworks: { ...openAiStyle, name: 'Fireworks', baseUrl: 'https://api.fireworks.ai/inference/v1', keyEnv: ['FIREWORKS_API_KEY'], topK: true },
  cerebras: {
    ...openAiStyle,
    name: 'Cerebras',
    baseUrl: 'https://api.cerebras.ai/v1',
    keyEnv: ['CEREBRAS_API_KEY'],
    maxTokensField: 'max_completion_tokens',
    limits: ['presencePenalty', 'frequencyPenalty', 'parallelToolCalls'],
    embeddings: 'none',
  },
  // Reports usage in every chunk unasked.
  perplexity: {
    ...openAiStyle,
    name: 'Perplexity',
    baseUrl: 'https://api.perplexity.ai',
    modelsPath: null,
    keyEnv: ['PERPLEXITY_API_KEY'],
    streamOptions: false,
    limits: ['tools', 'toolChoice', 'parallelToolCalls', 'seed', 'stop', 'jsonObject'],
    endUser: false,
    embeddings: 'none',
  },
  moonshot: {
    ...openAiStyle,
    name: 'Moonshot',
    baseUrl: 'https://api.moonshot.ai/v1',
    keyEnv: ['MOONSHOT_API_KEY'],
    limits: ['seed', 'toolChoice', 'parallelToolCalls', 'reasoningEffort'],
    reasoningField: 'reasoning_content',
    endUser: false,
    embeddings: 'none',
  },
  azure: {
    ...openAiStyle,
    name: 'Azure OpenAI',
    baseUrl: undefined,
    // It lists the models of a region; callers name deployments.
    modelsPath: null,
    keyEnv: [],
    keyHeader: 'api-key',
    maxTokensField: 'max_completion_tokens',
    fixedTemperature: reasoningModels,
    embeddings: 'base64',
  },
  // Its context is 4096 tokens unless the server is configured otherwise, and it cuts longer prompts silently.
  ollama: {
    ...openAiStyle,
    name: 'Ollama',
    baseUrl: 'http://127.0.0.1:11434/v1',
    keyEnv: [],
    local: { port: 11434 },
    limits: ['toolChoice', 'parallelToolCalls'],
    endUser: false,
    defaults: { contextWindow: 4096, maxTokens: 2048 },
  },
  lmstudio: {
    ...openAiStyle,
    name: 'LM Studio',
    baseUrl: 'http://127.0.0.1:1234/v1',
    keyEnv: [],
    local: { port: 1234 },
    topK: true,
    defaults: { contextWindow: 4096, maxTokens: 2048 },
  },
  llamacpp: {
    ...openAiStyle,
    name: 'llama.cpp',
    baseUrl: 'http://127.0.0.1:8080/v1',
    keyEnv: [],
    local: { port: 8080 },
    topK: true,
    reasoningField: 'reasoning_content',
    defaults: { contextWindow: 4096, maxTokens: 2048 },
  },
  vllm: {
    ...openAiStyle,
    name: 'vLLM',
    baseUrl: 'http://127.0.0.1:8000/v1',
    keyEnv: [],
    local: { port: 8000 },
    topK: true,
    reasoningField: 'reasoning_content',
    embeddings: 'base64',
  },
};
