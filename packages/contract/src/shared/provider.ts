import * as z from 'zod';
import { ModelCost } from '../methods/models.ts';
import { once } from '../once.ts';
import { ModelTier } from './model-tier.ts';

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

/** A price that the configuration states. Without prices of the cache, it costs as much as other input. */
export const ModelPriceEntry = once(() => ModelCost().partial().required({ input: true, output: true }));

/** A model that the configuration of a provider names. */
export const ProviderModelEntry = once(() =>
  z.strictObject({
    id: z.string().min(1).describe('As the provider names it.'),
    displayName: z.string().min(1).optional(),
    contextWindow: z.int().min(512).optional().describe('Tokens of input and output together; the built-in table or 128000 otherwise.'),
    maxTokens: z.int().min(1).optional().describe('Output tokens per call; the built-in table or 8192 otherwise.'),
    input: z
      .array(z.enum(['text', 'image', 'pdf']))
      .optional()
      .describe('What the model accepts in addition to text; by default from the built-in table, else text only.'),
    reasoning: z.boolean().optional(),
    tier: ModelTier().optional().describe('Capability; by default from its name, else mid. Small models are not asked to merge memories.'),
    cost: ModelPriceEntry().optional().describe('US dollars per million tokens.'),
  }),
);
