import { type AnswerEffort, operationTypes } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { CostOrigin } from '../../../llm/catalog.ts';
import type { ConfiguredModels } from '../../../llm/create-models.ts';
import { tierOf } from '../../../llm/model-tier.ts';
import type { ModelInfo } from '../../../llm/model.ts';
import type { Models, ProviderInfo } from '../../../llm/models.ts';
import type { Agent, AgentsApi } from '../agents/api.ts';

export interface ModelMethodsDeps {
  readonly models: Models & Pick<ConfiguredModels, 'costOriginOf'>;
  readonly agents: AgentsApi;
  /** Section `embedding`; applies to all agents. */
  readonly embedding: { readonly provider: string; readonly model: string; readonly timeoutMs: number } | undefined;
  /** Removes secrets that an address may carry. */
  readonly redactText: (text: string) => string;
}

/** `models.*` and `agent.getOperationModels`: views of the catalog; none of them calls a provider (json-rpc.md §4). */
export function createModelMethods({
  models,
  agents,
  embedding,
  redactText,
}: ModelMethodsDeps): HandlersOf<'models.list_providers' | 'models.list' | 'models.test' | 'agent.getOperationModels'> {
  const ofProvider = (provider: string) => models.list().filter((model) => model.provider === provider);
  const baseUrlOf = (provider: string) => redactText(models.providers().find(({ id }) => id === provider)?.baseUrl ?? '');
  const listed = (model: ModelInfo, baseUrl: string) =>
    listedModel({ ...model, efforts: models.effortsOf(model) }, baseUrl, models.costOriginOf(model));
  return {
    'models.list_providers': async () => {
      const providers = models
        .providers()
        .map(({ id }) => id)
        .sort();
      return { providers, count: providers.length };
    },
    'models.list': async ({ provider }) => {
      if (provider !== undefined) {
        const all = ofProvider(provider).map((model) => ({ provider, ...listed(model, baseUrlOf(provider)) }));
        return { models: all, total: all.length };
      }
      const providers = models.providers().map(({ id }) => {
        const all = ofProvider(id).map((model) => listed(model, baseUrlOf(id)));
        return { name: id, modelCount: all.length, models: all };
      });
      return { providers, totalModels: models.list().length };
    },
    'models.test': async ({ provider }, call) => testProvider({ models, agents }, provider, call),
    'agent.getOperationModels': async ({ agentId }, call) => operationModels({ models, agents, embedding }, agentId, call),
  };
}

function listedModel(model: ModelInfo & { readonly efforts: readonly AnswerEffort[] }, baseUrl: string, { source, asOf, url }: CostOrigin) {
  const { modelId, displayName, contextWindow, maxTokens, input, reasoning, price, validated } = model;
  const costFields = { costSource: source, costAsOf: asOf, costUrl: url };
  return {
    modelId,
    displayName,
    baseUrl,
    contextWindow,
    maxTokens,
    input: [...input],
    reasoning,
    efforts: [...model.efforts],
    tier: tierOf(model),
    cost: price,
    ...costFields,
    validated,
  };
}

/** A token limited to some agents learns about no other. */
function visible(call: CallContext, agentId: string) {
  return call.identity.agents?.includes(agentId) ?? true;
}

/** Returns the model of the agent's conversations; undefined when its configuration names one that is not in the catalog. */
function primaryOf(models: Models, agent: Agent): ModelInfo | undefined {
  return agent.config.model === undefined ? models.defaultModel() : models.resolve(agent.config.model);
}

function testProvider({ models, agents }: Pick<ModelMethodsDeps, 'models' | 'agents'>, provider: string, call: CallContext) {
  const info = models.providers().find(({ id }) => id === provider);
  const agentsUsing = agents.list().flatMap((agent) => {
    const primary = visible(call, agent.id) ? primaryOf(models, agent) : undefined;
    return primary?.provider === provider ? [{ agentId: agent.id, model: nameOf(primary) }] : [];
  });
  if (info === undefined) {
    return {
      provider,
      status: 'not_configured' as const,
      message: `No provider "${provider}" is configured or was found`,
      hint: `Add it under providers.${provider} in config.yaml; known: ${models
        .providers()
        .map(({ id }) => id)
        .join(', ')}`,
      modelsAvailable: 0,
      validatedModels: 0,
      agentsUsing,
    };
  }
  const listed = models.list().filter((model) => model.provider === provider);
  const counts = { modelsAvailable: listed.length, validatedModels: listed.filter((model) => model.validated).length, agentsUsing };
  if (listed.length === 0) {
    return {
      provider,
      status: 'no_models' as const,
      source: info.source,
      message: `Provider "${provider}" has no models`,
      hint: `Name them under providers.${provider}.models in config.yaml`,
      ...counts,
    };
  }
  return {
    provider,
    status: 'available' as const,
    source: info.source,
    ...(info.apiKeyConfigured ? {} : { hint: `No key is configured: set providers.${provider}.apiKey if the provider requires one` }),
    ...counts,
  };
}

function operationModels({ models, agents, embedding }: Omit<ModelMethodsDeps, 'redactText'>, asked: string | undefined, call: CallContext) {
  const agentId = asked ?? agents.defaultId;
  const agent = visible(call, agentId) ? agents.find(agentId) : undefined;
  if (agent === undefined) throw new AppError('not_found', `Agent not found: ${agentId}`, { param: 'agentId' });
  const primary = primaryOf(models, agent) ?? unknownModel(agent.config.model ?? '', 'model');
  const provider = (id: string) => models.providers().find((candidate) => candidate.id === id);
  const operations = operationTypes.map((operationType) => {
    const own = agent.config.operationModels[operationType];
    const model =
      own === undefined
        ? primary
        : (models.resolve(own.model, primary.provider) ?? unknownModel(own.model, `operationModels.${operationType}.model`));
    return {
      operationType,
      model: nameOf(model),
      provider: model.provider,
      modelId: model.modelId,
      source: own === undefined ? ('default' as const) : ('config' as const),
      timeoutMs: own?.timeoutMs ?? agent.config.modelTimeoutMs,
      tieringActive: own !== undefined,
      crossProvider: model.provider !== primary.provider,
      apiKeyConfigured: provider(model.provider)?.apiKeyConfigured ?? false,
    };
  });
  return {
    agentId,
    primaryModel: nameOf(primary),
    primaryProvider: primary.provider,
    providerFamily: provider(primary.provider)?.type ?? primary.provider,
    tieringActive: operations.some((operation) => operation.tieringActive),
    operations: embedding === undefined ? operations : [...operations, embeddingRow(embedding, primary, provider(embedding.provider))],
  };
}

function embeddingRow(
  { provider, model, timeoutMs }: NonNullable<ModelMethodsDeps['embedding']>,
  primary: ModelInfo,
  info: ProviderInfo | undefined,
) {
  return {
    operationType: 'embedding' as const,
    model: `${provider}/${model}`,
    provider,
    modelId: model,
    source: 'config' as const,
    timeoutMs,
    tieringActive: false,
    crossProvider: provider !== primary.provider,
    // Embeddings computed locally need no key.
    apiKeyConfigured: provider === 'hashing' || info?.apiKeyConfigured === true,
  };
}

function nameOf(model: ModelInfo) {
  return `${model.provider}/${model.modelId}`;
}

function unknownModel(name: string, key: string): never {
  throw new AppError('precondition_failed', `The agent's ${key} is "${name}", which is not in the catalog`);
}
