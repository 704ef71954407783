import { expect, test } from 'vitest';
import { readModels } from './read-models.ts';
import { vendorPrices } from './vendor-prices.ts';
import { knownModels } from './known-models.ts';

test.each([
  ['OpenAI', { object: 'list', data: [{ id: 'gpt-9', object: 'model', owned_by: 'openai' }] }, [{ id: 'gpt-9' }]],
  [
    'Anthropic',
    { data: [{ type: 'model', id: 'claude-9', display_name: 'Claude 9', created_at: '2026-01-01T00:00:00Z' }], has_more: false },
    [{ id: 'claude-9', displayName: 'Claude 9' }],
  ],
  ['Google', { object: 'list', data: [{ id: 'models/gemini-9', object: 'model' }] }, [{ id: 'gemini-9' }]],
  ['vLLM', { data: [{ id: 'qwen', max_model_len: 32_768 }] }, [{ id: 'qwen', contextWindow: 32_768 }]],
  ['llama.cpp', { data: [{ id: 'q.gguf', meta: { n_ctx: 8192 } }] }, [{ id: 'q.gguf', contextWindow: 8192 }]],
  ['Groq', { data: [{ id: 'llama', context_window: 131_072, active: true }] }, [{ id: 'llama', contextWindow: 131_072 }]],
  ['Mistral', { data: [{ id: 'mistral', max_context_length: 128_000 }] }, [{ id: 'mistral', contextWindow: 128_000 }]],
  ['Together', [{ id: 'org/m', context_length: 8192, pricing: { input: 0.2, output: 0.6 } }], [{ id: 'org/m', contextWindow: 8192 }]],
  [
    'OpenRouter',
    {
      data: [
        {
          id: 'org/m',
          name: 'M',
          context_length: 262_144,
          pricing: { prompt: '0.00000025', completion: '0.000002', input_cache_read: '2.5e-8', request: '0' },
        },
        { id: 'org/router', pricing: { prompt: '-1', completion: '-1' } },
        { id: 'org/odd', pricing: { prompt: null, completion: '' } },
      ],
    },
    [
      { id: 'org/m', displayName: 'M', contextWindow: 262_144, price: { input: 0.25, output: 2, cacheRead: 0.025, cacheWrite: 0.25 } },
      { id: 'org/router' },
      { id: 'org/odd' },
    ],
  ],
])('reads the list of %s', (_vendor, answer, models) => {
  expect(readModels(answer)).toEqual(models);
});

test('leaves out other uses, repeats and invalid entries, and ends at 1000', () => {
  const ids = ['text-embedding-3', 'whisper-1', 'gpt-image-1', 'good', 'good', 'has space', 'x'.repeat(257), ''];
  expect(readModels({ data: [...ids.map((id) => ({ id })), { name: 'no id' }, 'text', null] })).toEqual([{ id: 'good' }]);
  expect(readModels(Array.from({ length: 1500 }, (_, index) => ({ id: `m${index}` })))).toHaveLength(1000);
});

test.each([undefined, null, 'text', { models: [] }, { data: {} }])('%j is not a list', (answer) => {
  expect(() => readModels(answer)).toThrow();
});

test('each price of the table has its day and place, and belongs to a model that is known', () => {
  for (const [type, { asOf, source, models }] of Object.entries(vendorPrices)) {
    expect([Number.isNaN(Date.parse(asOf)), URL.canParse(source)], type).toEqual([false, true]);
    const known = knownModels(type as keyof typeof vendorPrices).map(({ id }) => id);
    expect(Object.keys(models).filter((id) => !known.includes(id))).toEqual([]);
  }
});
