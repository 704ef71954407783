import type { AnswerEffort, OperationType } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Identity } from '../../../../kernel/call-context.ts';
import type { ModelInfo } from '../../../../llm/model.ts';
import type { Models } from '../../../../llm/models.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';

/** What finds a model by its name. */
export type ModelNames = Pick<Models, 'resolve' | 'defaultModel'>;

const agentPrefix = 'agent/';

/** Aliases by name, or by prefix before a `*`; values are valid values of `model`. */
export type ModelAliases = Readonly<Record<string, string>>;

interface Target {
  readonly agentId: string;
  readonly model?: ModelInfo;
}

/**
 * Resolves `model` of a `/v1` request (decisions §3), in this order: a listed `provider/model`, an agent id (also
 * `agent/<id>`), a bare model id in the default agent's provider, then in catalog order. A model uses the default agent.
 * Aliases apply only to names that match nothing else; the longest match counts. `allowed` are the only agents that the
 * token may use.
 */
export function resolveTarget(
  aliases: ModelAliases,
  name: string,
  agents: AgentsApi,
  models: ModelNames,
  allowed: readonly string[] | undefined,
): Target {
  const target = findTarget(name, agents, models) ?? findAliased(aliases, name, agents, models);
  // Agents that a token may not use do not exist for it; the list of models omits them too.
  if (target === undefined || (allowed !== undefined && !allowed.includes(target.agentId)))
    throw new AppError('not_found', `Model not found: ${name}`, { param: 'model' });
  return target;
}

function findAlias(aliases: ModelAliases, name: string): string | undefined {
  const exact = Object.hasOwn(aliases, name) ? aliases[name] : undefined;
  if (exact !== undefined) return exact;
  const [longest] = Object.keys(aliases)
    .filter((key) => key.endsWith('*') && name.startsWith(key.slice(0, -1)))
    .toSorted((a, b) => b.length - a.length);
  return longest === undefined ? undefined : aliases[longest];
}

function findAliased(aliases: ModelAliases, name: string, agents: AgentsApi, models: ModelNames): Target | undefined {
  const alias = findAlias(aliases, name);
  return alias === undefined ? undefined : findTarget(alias, agents, models);
}

function findTarget(name: string, agents: AgentsApi, models: ModelNames): Target | undefined {
  const preferred = agents.find(agents.defaultId)?.config.model;
  const model = models.resolve(name, preferred === undefined ? undefined : models.resolve(preferred)?.provider);
  // A bare id may contain slashes or look like an agent id, so only the full name takes precedence over agents.
  if (model !== undefined && name === `${model.provider}/${model.modelId}`) return { agentId: agents.defaultId, model };
  const agentId = name.startsWith(agentPrefix) ? name.slice(agentPrefix.length) : name;
  if (agents.find(agentId) !== undefined) return { agentId };
  return model === undefined ? undefined : { agentId: agents.defaultId, model };
}

/** Returns the agent of calls that name none: the default one, or the first that the token is limited to. */
export function defaultAgentOf({ defaultId }: AgentsApi, { agents: allowed }: Identity): string {
  return allowed === undefined || allowed.includes(defaultId) ? defaultId : (allowed[0] ?? defaultId);
}

/** Returns the models of a turn: the requested one or the agent's own, then its fallbacks; unknown names are skipped. */
export function modelsFor(agent: Agent, models: ModelNames, wanted?: ModelInfo): readonly ModelInfo[] {
  const primary = wanted ?? primaryModel(agent, models);
  const fallbacks = agent.config.fallbackModels.map((name) => models.resolve(name)).filter((model) => model !== undefined && model !== primary);
  return [primary, ...fallbacks.filter((model) => model !== undefined)];
}

/** Returns the model that a request names; `invalid_params` when no provider offers it. */
export function wantedModel(models: ModelNames, name: string | undefined): ModelInfo | undefined {
  if (name === undefined) return undefined;
  const model = models.resolve(name);
  if (model === undefined) throw new AppError('invalid_params', `model: no configured provider offers ${name}`, { param: 'model' });
  return model;
}

/** Returns the conversation model of an agent: `operationModels.interactive`, else `model`, else the global default. */
export function primaryModel(agent: Agent, models: ModelNames): ModelInfo {
  const { model: own, operationModels } = agent.config;
  const name = operationModels.interactive?.model;
  if (name === undefined) return ownModel(agent, models);
  const provider = (own === undefined ? models.defaultModel() : models.resolve(own))?.provider;
  return models.resolve(name, provider) ?? unknownModel(agent, name);
}

/** Returns the model of an agent for operations not in `operationModels`: `model`, else the global default. */
export function ownModel(agent: Agent, models: ModelNames): ModelInfo {
  const name = agent.config.model;
  if (name === undefined) return models.defaultModel();
  return models.resolve(name) ?? unknownModel(agent, name);
}

/** Returns the conversation model of an agent as `provider/model`, with its efforts; the default one for an agent that is gone. */
export function conversationModelOf(agentId: string, agents: Pick<AgentsApi, 'find'>, models: Models): { model: string; efforts: AnswerEffort[] } {
  const agent = agents.find(agentId);
  const model = agent === undefined ? models.defaultModel() : primaryModel(agent, models);
  return { model: `${model.provider}/${model.modelId}`, efforts: [...models.effortsOf(model)] };
}

/** Returns the models of an unattended turn: the one it names, that of its operation, or the agent's own. */
export function modelsForOperation(
  agent: Agent,
  models: ModelNames,
  { model, operation }: { readonly model?: string | undefined; readonly operation: OperationType },
): readonly ModelInfo[] {
  const name = model ?? agent.config.operationModels[operation]?.model;
  if (name === undefined) return modelsFor(agent, models, ownModel(agent, models));
  return modelsFor(agent, models, models.resolve(name, ownModel(agent, models).provider) ?? unknownModel(agent, name));
}

function unknownModel({ id }: Agent, name: string): never {
  throw new AppError('precondition_failed', `Agent ${id} uses model ${name}, which no configured provider offers`);
}
