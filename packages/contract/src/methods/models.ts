import * as z from 'zod';
import { once } from '../once.ts';
import { ModelTier } from '../shared/model-tier.ts';
import { AnswerEffort } from '../shared/turn.ts';
import { method } from '../method.ts';

/** US dollars per million tokens. */
export const ModelCost = once(() =>
  z
    .strictObject({ input: z.number().min(0), output: z.number().min(0), cacheRead: z.number().min(0), cacheWrite: z.number().min(0) })
    .meta({ id: 'ModelCost' }),
);

/** Fields that say where the price of a model comes from. */
export const costOrigin = once(() => ({
  costSource: z
    .enum(['config', 'listed', 'built_in', 'local'])
    .nullable()
    .describe(
      'Where the price is from: config.yaml, the list of the provider, the built-in table, or `local` for a server of this machine, which is free.',
    ),
  costAsOf: z.iso.date().optional().describe('Day on which a price of the built-in table was last known to be right.'),
  costUrl: z.string().optional().describe('Where the vendor publishes a price of the built-in table.'),
}));

const listed = once(() => ({
  modelId: z.string(),
  displayName: z.string(),
  baseUrl: z.string(),
  contextWindow: z.int().min(1),
  maxTokens: z.int().min(1),
  input: z.array(z.enum(['text', 'image', 'pdf'])),
  reasoning: z.boolean(),
  efforts: z.array(AnswerEffort).describe('Values of `effort` in `POST /api/chat` for this model; empty when it has no choice.'),
  tier: ModelTier().describe('Capability, as configured or by the name of the model.'),
  cost: ModelCost().nullable().describe('Null when the price is not known.'),
  ...costOrigin(),
  validated: z.boolean().describe('True when the provider itself listed the model or the configuration names it.'),
}));
const ListedModel = once(() => z.strictObject(listed()).meta({ id: 'ListedModel' }));
const ListedModelWithProvider = once(() => z.strictObject({ provider: z.string(), ...listed() }).meta({ id: 'ListedModelWithProvider' }));

const example = {
  modelId: 'test-model',
  displayName: 'test-model',
  baseUrl: 'http://127.0.0.1:8000/v1',
  contextWindow: 128000,
  maxTokens: 8192,
  input: ['text' as const],
  reasoning: false,
  efforts: [],
  tier: 'mid' as const,
  cost: { input: 1, output: 2, cacheRead: 1, cacheWrite: 1 },
  costSource: 'config' as const,
  validated: true,
};

export const models = {
  'models.list_providers': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Lists the ids of the providers in the catalog.',
    params: () => z.strictObject({}),
    result: () => z.strictObject({ providers: z.array(z.string()), count: z.int().min(0) }),
    examples: [{ params: {}, result: { providers: ['local', 'offline'], count: 2 } }],
    since: '0.1.0',
  }),
  'models.list': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Lists the models of the catalog, of one provider or grouped by provider.',
    description: 'With `provider`: `models` and `total` (an unknown provider returns an empty list). Without: `providers` and `totalModels`.',
    params: () => z.strictObject({ provider: z.string().min(1).optional() }),
    result: () =>
      z.union([
        z.strictObject({ models: z.array(ListedModelWithProvider()), total: z.int().min(0) }),
        z.strictObject({
          providers: z.array(z.strictObject({ name: z.string(), modelCount: z.int().min(0), models: z.array(ListedModel()) })),
          totalModels: z.int().min(0),
        }),
      ]),
    examples: [
      { params: { provider: 'local' }, result: { models: [{ provider: 'local', ...example }], total: 1 } },
      { params: {}, result: { providers: [{ name: 'local', modelCount: 1, models: [example] }], totalModels: 1 } },
    ],
    since: '0.1.0',
  }),
  'models.test': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Checks a provider against the local catalog; no network, credential check or inference.',
    params: () => z.strictObject({ provider: z.string().min(1) }),
    result: () =>
      z.strictObject({
        provider: z.string(),
        status: z.enum(['available', 'no_models', 'not_configured']),
        source: z.enum(['config', 'environment', 'local_server', 'built_in']).optional(),
        message: z.string().optional(),
        hint: z.string().optional(),
        modelsAvailable: z.int().min(0),
        validatedModels: z.int().min(0),
        agentsUsing: z.array(z.strictObject({ agentId: z.string(), model: z.string() })),
      }),
    examples: [
      {
        params: { provider: 'local' },
        result: {
          provider: 'local',
          status: 'available',
          source: 'config',
          modelsAvailable: 1,
          validatedModels: 1,
          agentsUsing: [{ agentId: 'default', model: 'local/test-model' }],
        },
      },
    ],
    since: '0.1.0',
  }),
};
