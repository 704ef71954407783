import type { ProviderType } from './provider.ts';

/** A vendor or local server as it is offered to somebody who connects a model. */
export interface VendorOffer {
  readonly type: ProviderType;
  readonly name: string;
  /** `local`: a server of this machine, which needs no key; `own`: every installation has its own address, and perhaps a key. */
  readonly kind: 'hosted' | 'local' | 'own';
  /** Address of a local server unless it is configured otherwise. */
  readonly address?: string;
  /** Page on which the vendor issues keys. */
  readonly keyPage?: string;
}

/** All vendors, in the order in which they are offered. */
export const vendorOffers: readonly VendorOffer[] = [
  { type: 'openai', name: 'OpenAI', kind: 'hosted', keyPage: 'https://platform.openai.com/api-keys' },
  { type: 'anthropic', name: 'Anthropic', kind: 'hosted', keyPage: 'https://console.anthropic.com/settings/keys' },
  { type: 'google', name: 'Google Gemini', kind: 'hosted', keyPage: 'https://aistudio.google.com/apikey' },
  { type: 'openrouter', name: 'OpenRouter', kind: 'hosted', keyPage: 'https://openrouter.ai/settings/keys' },
  { type: 'mistral', name: 'Mistral', kind: 'hosted', keyPage: 'https://console.mistral.ai/api-keys' },
  { type: 'groq', name: 'Groq', kind: 'hosted', keyPage: 'https://console.groq.com/keys' },
  { type: 'xai', name: 'xAI', kind: 'hosted', keyPage: 'https://console.x.ai' },
  { type: 'deepseek', name: 'DeepSeek', kind: 'hosted', keyPage: 'https://platform.deepseek.com/api_keys' },
  { type: 'ollama', name: 'Ollama', kind: 'local', address: 'http://127.0.0.1:11434/v1' },
  { type: 'lmstudio', name: 'LM Studio', kind: 'local', address: 'http://127.0.0.1:1234/v1' },
  { type: 'llamacpp', name: 'llama.cpp', kind: 'local', address: 'http://127.0.0.1:8080/v1' },
  { type: 'vllm', name: 'vLLM', kind: 'local', address: 'http://127.0.0.1:8000/v1' },
  { type: 'openai-compatible', name: 'OpenAI-compatible server', kind: 'own' },
  { type: 'azure', name: 'Azure OpenAI', kind: 'own' },
  { type: 'together', name: 'Together', kind: 'hosted' },
  { type: 'fireworks', name: 'Fireworks', kind: 'hosted' },
  { type: 'cerebras', name: 'Cerebras', kind: 'hosted' },
  { type: 'perplexity', name: 'Perplexity', kind: 'hosted' },
  { type: 'moonshot', name: 'Moonshot', kind: 'hosted' },
];
