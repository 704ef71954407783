import { AgentConfig } from '@gatehouse/contract';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CallContext } from '../../../kernel/call-context.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { createEventBus } from '../../../kernel/event-bus.ts';
import { silentLog } from '../../../kernel/log.ts';
import { createRedactor } from '../../../kernel/redact.ts';
import { ModelsConfig, ProvidersConfig } from '../../../llm/config.ts';
import { type ConfiguredModels, createModels } from '../../../llm/create-models.ts';
import type { Agent, AgentsApi } from '../agents/api.ts';
import { createModelMethods } from './methods.ts';

let models: ConfiguredModels;
let methods: ReturnType<typeof createModelMethods>;

const agent = (id: string, config: object): Agent => ({
  id,
  config: AgentConfig.parse(config),
  source: 'file',
  suspended: false,
  isDefault: id === 'default',
  workspaceDir: '/nowhere',
});
const list = [
  agent('default', { model: 'local/small' }),
  agent('tiered', {
    model: 'local/large',
    modelTimeoutMs: 5000,
    operationModels: { cron: { model: 'small', timeoutMs: 2000 }, compaction: { model: 'other/tiny' } },
  }),
  agent('lost', { model: 'gone/model' }),
];
const agents: AgentsApi = {
  defaultId: 'default',
  list: () => list,
  find: (agentId) => list.find(({ id }) => id === agentId),
  usable: () => {
    throw new Error('not asked for here');
  },
};

function call(bound?: readonly string[]): CallContext {
  return {
    identity: { principalId: 'token:t', tokenId: 't', scopes: ['admin'], ...(bound === undefined ? {} : { agents: bound }) },
    traceId: '0'.repeat(32),
    requestId: 'r',
    signal: new AbortController().signal,
    transport: 'http',
  };
}

beforeAll(async () => {
  models = await createModels({
    providers: ProvidersConfig.parse({
      other: { type: 'openai', apiKey: 'k', models: [{ id: 'tiny' }] },
      local: {
        type: 'openai-compatible',
        baseUrl: 'http://127.0.0.1:9/v1',
        models: [{ id: 'large', cost: { input: 1, output: 2 } }, { id: 'small' }],
      },
      empty: { type: 'vllm' },
      proxied: { type: 'openai-compatible', baseUrl: 'http://user:page-password@127.0.0.1:9/v1?key=query-secret', models: [{ id: 'hidden' }] },
    }),
    modelsConfig: ModelsConfig.parse({}),
    env: {},
    probe: undefined,
    bus: createEventBus(() => undefined),
    clock: systemClock,
    log: silentLog,
  });
  methods = createModelMethods({
    models,
    agents,
    embedding: { provider: 'other', model: 'vectors', timeoutMs: 3000 },
    redactText: createRedactor().redact,
  });
});
afterAll(() => models[Symbol.asyncDispose]());

describe('models', () => {
  test('providers are listed by id, sorted', async () => {
    expect(await methods['models.list_providers']({}, call())).toEqual({ providers: ['empty', 'local', 'other', 'proxied'], count: 4 });
  });

  test('models of one provider, of an unknown one, and of all', async () => {
    expect(await methods['models.list']({ provider: 'local' }, call())).toMatchObject({
      models: [
        {
          provider: 'local',
          modelId: 'large',
          baseUrl: 'http://127.0.0.1:9/v1',
          cost: { input: 1, output: 2, cacheRead: 1, cacheWrite: 1 },
          costSource: 'config',
          validated: true,
        },
        { provider: 'local', modelId: 'small', cost: null },
      ],
      total: 2,
    });
    expect(await methods['models.list']({ provider: 'nope' }, call())).toEqual({ models: [], total: 0 });
    expect(await methods['models.list']({}, call())).toMatchObject({
      providers: [
        { name: 'other', modelCount: 1 },
        { name: 'local', modelCount: 2 },
        { name: 'empty', modelCount: 0 },
        { name: 'proxied', modelCount: 1 },
      ],
      totalModels: 4,
    });
  });

  test('an address is shown without the secrets in it', async () => {
    const views = JSON.stringify([await methods['models.list']({}, call()), await methods['models.list']({ provider: 'proxied' }, call())]);
    expect(views).toContain('127.0.0.1:9/v1?key=');
    expect(views).not.toMatch(/page-password|query-secret/);
  });

  test('a provider is checked against the catalog', async () => {
    expect(await methods['models.test']({ provider: 'local' }, call())).toMatchObject({
      status: 'available',
      source: 'config',
      modelsAvailable: 2,
      validatedModels: 2,
      agentsUsing: [
        { agentId: 'default', model: 'local/small' },
        { agentId: 'tiered', model: 'local/large' },
      ],
    });
    expect(await methods['models.test']({ provider: 'local' }, call(['tiered']))).toMatchObject({ agentsUsing: [{ agentId: 'tiered' }] });
    expect(await methods['models.test']({ provider: 'empty' }, call())).toMatchObject({ status: 'no_models', modelsAvailable: 0 });
    expect(await methods['models.test']({ provider: 'nope' }, call())).toMatchObject({
      status: 'not_configured',
      modelsAvailable: 0,
      agentsUsing: [],
    });
  });
});

describe('operation models', () => {
  test('without own models every operation takes the primary one', async () => {
    const result = await methods['agent.getOperationModels']({}, call());
    expect(result).toMatchObject({
      agentId: 'default',
      primaryModel: 'local/small',
      primaryProvider: 'local',
      providerFamily: 'openai-compatible',
      tieringActive: false,
    });
    const own = result.operations.filter(({ operationType }) => operationType !== 'embedding');
    expect(own).toHaveLength(7);
    expect(
      own.every(
        ({ source, model, crossProvider, apiKeyConfigured }) =>
          source === 'default' && model === 'local/small' && !crossProvider && !apiKeyConfigured,
      ),
    ).toBe(true);
  });

  test('an operation with its own model says so, also for a model of another provider', async () => {
    const { operations, tieringActive } = await methods['agent.getOperationModels']({ agentId: 'tiered' }, call());
    const of = (type: string) => operations.find(({ operationType }) => operationType === type);
    expect(tieringActive).toBe(true);
    expect(of('cron')).toMatchObject({ model: 'local/small', source: 'config', timeoutMs: 2000, tieringActive: true, crossProvider: false });
    expect(of('compaction')).toMatchObject({ model: 'other/tiny', source: 'config', timeoutMs: 5000, crossProvider: true, apiKeyConfigured: true });
    expect(of('heartbeat')).toMatchObject({ model: 'local/large', source: 'default', tieringActive: false });
  });

  test('embeddings have one model for all agents', async () => {
    const { operations } = await methods['agent.getOperationModels']({ agentId: 'tiered' }, call());
    expect(operations.at(-1)).toEqual({
      operationType: 'embedding',
      model: 'other/vectors',
      provider: 'other',
      modelId: 'vectors',
      source: 'config',
      timeoutMs: 3000,
      tieringActive: false,
      crossProvider: true,
      apiKeyConfigured: true,
    });
  });

  test("an agent that is unknown or not the token's is not found; one with a lost model says which", async () => {
    await expect(methods['agent.getOperationModels']({ agentId: 'nope' }, call())).rejects.toMatchObject({ code: 'not_found' });
    await expect(methods['agent.getOperationModels']({ agentId: 'default' }, call(['tiered']))).rejects.toMatchObject({ code: 'not_found' });
    await expect(methods['agent.getOperationModels']({ agentId: 'lost' }, call())).rejects.toMatchObject({
      code: 'precondition_failed',
      message: expect.stringContaining('gone/model'),
    });
  });
});
