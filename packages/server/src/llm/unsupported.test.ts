import { describe, expect, test } from 'vitest';
import type { ProviderType } from '@gatehouse/contract';
import type { ModelOptions } from './model.ts';
import { offlineLimits } from './offline/offline.ts';
import { testModel } from './testing.ts';
import { findUnsupported } from './unsupported.ts';
import { vendors } from './vendors.ts';

const everything: ModelOptions = {
  topP: 0.5,
  stop: ['x'],
  seed: 1,
  presencePenalty: 1,
  frequencyPenalty: 1,
  responseFormat: { type: 'json_object' },
  toolChoice: 'required',
  parallelToolCalls: false,
  reasoningEffort: 'low',
  endUser: 'ada',
};
const optionOf = (type: ProviderType, options: ModelOptions, tools = false) => findUnsupported(testModel, vendors[type], { options, tools })?.option;

describe('what a vendor does not support', () => {
  test('is nothing when its table has no limits', () => {
    for (const type of ['openai', 'openai-compatible', 'vllm', 'azure'] as const) expect(optionOf(type, everything, true)).toBeUndefined();
  });

  test.for<[ProviderType, ModelOptions, string]>([
    ['anthropic', { seed: 1 }, 'seed'],
    ['anthropic', { responseFormat: { type: 'json_object' } }, 'responseFormat'],
    ['deepseek', { responseFormat: { type: 'json_schema', name: 'a', schema: {} } }, 'responseFormat'],
    ['groq', { frequencyPenalty: 0.1 }, 'frequencyPenalty'],
    ['ollama', { toolChoice: { name: 'look' } }, 'toolChoice'],
    ['perplexity', {}, 'tools'],
    ['moonshot', { parallelToolCalls: false }, 'parallelToolCalls'],
  ])('%s: %j is named', ([type, options, option]) => {
    expect(optionOf(type, options, true)).toBe(option);
  });

  test('ignores values that change nothing', () => {
    expect(optionOf('groq', { presencePenalty: 0, frequencyPenalty: 0, topP: 1 })).toBeUndefined();
    expect(optionOf('ollama', { toolChoice: 'auto', parallelToolCalls: true }, true)).toBeUndefined();
    expect(optionOf('ollama', { toolChoice: 'none', parallelToolCalls: false })).toBeUndefined();
    expect(optionOf('anthropic', { responseFormat: { type: 'json_schema', name: 'a', schema: {} }, stop: [] })).toBeUndefined();
  });

  test('is reported with vendor and model', () => {
    expect(findUnsupported(testModel, vendors.anthropic, { options: { seed: 1 }, tools: false })?.message).toBe(
      'Anthropic, which serves the model mock/mock-fast, does not offer a seed',
    );
  });

  test('the offline answer accepts tools and numbers, but promises no format', () => {
    expect(findUnsupported(testModel, offlineLimits, { options: { topP: 0.1, seed: 1 }, tools: true })).toBeUndefined();
    expect(findUnsupported(testModel, offlineLimits, { options: { responseFormat: { type: 'json_object' } }, tools: false })?.option).toBe(
      'responseFormat',
    );
  });
});
