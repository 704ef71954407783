import { expect, test } from 'vitest';
import { tierOf } from './model-tier.ts';

test.each([
  ['gpt-5.2', 'frontier'],
  ['gpt-5-mini', 'mid'],
  ['gpt-5-nano', 'small'],
  ['claude-sonnet-4-5', 'frontier'],
  ['anthropic/claude-sonnet-4.5', 'frontier'],
  ['claude-haiku-4-5-20251001', 'mid'],
  ['gemini-2.5-pro', 'frontier'],
  ['gemini-2.5-flash', 'mid'],
  ['gemini-2.5-flash-lite', 'small'],
  ['llama-3.1-8b-instant', 'small'],
  ['llama3.2:3b', 'small'],
  ['qwen2.5:14b', 'small'],
  ['mixtral-8x7b', 'mid'],
  ['qwen3:30b-a3b', 'mid'],
  ['meta-llama/Llama-3.3-70B-Instruct-Turbo', 'mid'],
  ['phi-4', 'small'],
  ['some-model', 'mid'],
] as const)('"%s" is a %s model by its name', (modelId, tier) => {
  expect(tierOf({ provider: 'p', modelId })).toBe(tier);
});

test('the configured tier wins, and the built-in model is small', () => {
  expect(tierOf({ provider: 'p', modelId: 'gpt-5.2', tier: 'small' })).toBe('small');
  expect(tierOf({ provider: 'offline', modelId: 'offline' })).toBe('small');
});
