import type { ModelObject } from '@gatehouse/contract';
import type { AgentsApi } from '../../features/agents/agents/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import type { Models } from '../../llm/models.ts';
import type { HttpCall } from '../http-call.ts';
import { sendJson } from '../reply.ts';

export interface ModelRoutesDeps {
  readonly models: Models;
  readonly agents: AgentsApi;
  readonly embeddingModel?: { readonly provider: string; readonly model: string } | undefined;
}

/** Lists the catalog, the embedding model, then the agents as `agent/<id>`; only what the token can use (http-gateway.md §2.6, §4.2). */
function visible({ models, agents, embeddingModel }: ModelRoutesDeps, call: HttpCall): ModelObject[] {
  const allowed = call.identity?.agents;
  const reachable = (agentId: string): boolean => allowed === undefined || allowed.includes(agentId);
  // A model requested by its own name runs in the default agent.
  const catalog = reachable(agents.defaultId) ? models.list() : [];
  const known = catalog.map(({ provider, modelId }) => ({ id: `${provider}/${modelId}`, owner: provider }));
  const embedder = embeddingModel === undefined ? [] : [{ id: `${embeddingModel.provider}/${embeddingModel.model}`, owner: embeddingModel.provider }];
  return [
    ...[...known, ...embedder.filter(({ id }) => known.every((model) => model.id !== id))].map(({ id, owner }): ModelObject => ({
      id,
      object: 'model',
      created: 0,
      owned_by: owner,
    })),
    ...agents
      .list()
      .filter((agent) => reachable(agent.id))
      .map((agent): ModelObject => ({ id: `agent/${agent.id}`, object: 'model', created: 0, owned_by: 'gatehouse' })),
  ];
}

export function createModelRoutes(deps: ModelRoutesDeps): { readonly list: (call: HttpCall) => void; readonly get: (call: HttpCall) => void } {
  return {
    list: (call) => sendJson(call, 200, { object: 'list', data: visible(deps, call) }),
    get(call) {
      const id = decoded(call.params['id'] ?? '');
      const model = visible(deps, call).find((candidate) => candidate.id === id);
      if (model === undefined) throw new AppError('not_found', 'Model not found', { param: 'model' });
      sendJson(call, 200, model);
    },
  };
}

/** The id spans the rest of the path and may have its slashes percent-encoded; it is decoded once, and only used for a lookup. */
function decoded(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined;
  }
}
