import { AppError } from '../../kernel/app-error.ts';
import type { ModelInfo } from '../../llm/model.ts';
import type { Models } from '../../llm/models.ts';
import type { Agent, AgentsApi } from '../agents/api.ts';

const agentPrefix = 'agent/';

interface Target {
  readonly agentId: string;
  readonly model?: ModelInfo;
}

/**
 * What `model` of a `/v1` request means (decisions §3), in this order: a listed `provider/model`, an agent id (also
 * `agent/<id>`), a bare model id in the default agent's provider, then in catalog order. A model goes to the default agent.
 * `allowed` are the only agents that the token may use.
 */
export function resolveTarget(name: string, agents: AgentsApi, models: Models, allowed: readonly string[] | undefined): Target {
  const target = findTarget(name, agents, models);
  // What a token may not use does not exist for it: the list of models does not show it either.
  if (target === undefined || (allowed !== undefined && !allowed.includes(target.agentId)))
    throw new AppError('not_found', `Model not found: ${name}`, { param: 'model' });
  return target;
}

function findTarget(name: string, agents: AgentsApi, models: Models): Target | undefined {
  const preferred = agents.find(agents.defaultId)?.config.model;
  const model = models.resolve(name, preferred === undefined ? undefined : models.resolve(preferred)?.provider);
  // A bare id may contain slashes too, and may look like an agent's: only the full name comes before the agents.
  if (model !== undefined && name === `${model.provider}/${model.modelId}`) return { agentId: agents.defaultId, model };
  const agentId = name.startsWith(agentPrefix) ? name.slice(agentPrefix.length) : name;
  if (agents.find(agentId) !== undefined) return { agentId };
  return model === undefined ? undefined : { agentId: agents.defaultId, model };
}

/** The models of a turn: the one asked for or the agent's own, then its fallbacks; a name that is in no catalog is passed over. */
export function modelsFor(agent: Agent, models: Models, wanted?: ModelInfo): readonly ModelInfo[] {
  const primary = wanted ?? primaryModel(agent, models);
  const fallbacks = agent.config.fallbackModels.map((name) => models.resolve(name)).filter((model) => model !== undefined && model !== primary);
  return [primary, ...fallbacks.filter((model) => model !== undefined)];
}

/** The model that an agent talks with: `operationModels.interactive` where it is set, else `model`, else the default of all. */
export function primaryModel({ id, config }: Agent, models: Models): ModelInfo {
  const name = config.operationModels.interactive?.model ?? config.model;
  if (name === undefined) return models.defaultModel();
  const model = models.resolve(name);
  if (model === undefined) throw new AppError('precondition_failed', `Agent ${id} uses model ${name}, which no configured provider has`);
  return model;
}
