import { expect, test } from 'vitest';
import type { ModelInfo } from '../llm/model.ts';
import type { CostOrigin } from '../llm/catalog.ts';
import { checkPrices } from './doctor-prices.ts';

const model: ModelInfo = {
  provider: 'p',
  modelId: 'm',
  displayName: 'm',
  contextWindow: 1000,
  maxTokens: 100,
  input: ['text'],
  reasoning: false,
  price: null,
  validated: false,
};
const provider = (id: string, ...costs: CostOrigin[]) => ({
  id,
  models: costs.map((cost) => ({ ...model, origin: { source: 'built_in' as const, cost } })),
});
const table = { source: 'built_in', asOf: '2026-01-10', url: 'https://vendor.example/prices' } as const;
const at = (day: string) => Date.parse(day);

test('built-in prices in use that are half a year old are reported, with the place to compare them with', () => {
  expect(checkPrices([provider('vendor', { source: null }, table)], 'found', at('2026-07-08'))).toEqual({ status: 'ok', detail: 'found' });
  expect(checkPrices([provider('vendor', { source: null }, table)], 'found', at('2026-07-10'))).toMatchObject({
    status: 'warn',
    detail: 'found. The built-in prices of vendor are of 2026-01-10',
    hint: expect.stringContaining('https://vendor.example/prices'),
  });
});

test('prices that are stated or listed do not become old', () => {
  expect(checkPrices([provider('own', { source: 'config' }, { source: 'listed' }, { source: 'local' })], 'found', at('2030-01-01'))).toMatchObject({
    status: 'ok',
  });
});
