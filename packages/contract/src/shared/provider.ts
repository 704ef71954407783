/** Types of model providers: which wire a provider speaks, and which quirks it has. */
export const providerTypes = [
  'openai-compatible',
  'openai',
  'anthropic',
  'google',
  'mistral',
  'groq',
  'xai',
  'openrouter',
  'deepseek',
  'together',
  'fireworks',
  'cerebras',
  'perplexity',
  'moonshot',
  'azure',
  'ollama',
  'lmstudio',
  'llamacpp',
  'vllm',
] as const;
export type ProviderType = (typeof providerTypes)[number];
