import { AgentConfig } from '@gatehouse/contract';
import { AppError } from '../../../kernel/app-error.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { AgentsApi, ConfigureAgent } from './api.ts';
import { AgentChanges, type AgentChangesDeps } from './changes.ts';
import { AgentRegistry, type AgentRegistryDeps } from './registry.ts';
import { listAgents } from './store.ts';

type AgentMethods = HandlersOf<`agents.${'list' | 'create' | 'get' | 'update' | 'delete' | 'suspend' | 'resume'}`>;

export interface AgentsDeps extends AgentRegistryDeps, AgentChangesDeps {}

/** Agents: read from memory, written through. */
export async function createAgents(
  deps: AgentsDeps,
): Promise<{ readonly api: AgentsApi; readonly methods: AgentMethods; readonly configure: ConfigureAgent } & Disposable> {
  const registry = new AgentRegistry(deps, await deps.db.read(listAgents, {}));
  const changes = new AgentChanges(deps, registry);
  const following = deps.configured.onChange((configured) => changes.follow(configured));
  const configure: ConfigureAgent = (change, call) => changes.configure(change, call);

  const api: AgentsApi = {
    defaultId: deps.defaultId,
    list: () => registry.list(),
    find: (agentId) => registry.find(agentId),
    usable(agentId, call) {
      const agent = registry.visible(agentId ?? deps.defaultId, call);
      if (agent.suspended) throw new AppError('precondition_failed', `Agent is suspended: ${agent.id}`);
      return agent;
    },
  };

  const methods: AgentMethods = {
    'agents.list': async (_params, call) => ({
      agents: registry
        .list()
        .map((agent) => agent.id)
        .filter((id) => call.identity.agents?.includes(id) ?? true),
    }),

    'agents.get': async ({ agentId }, call) => {
      const { config, source, suspended, isDefault, workspaceDir } = registry.visible(agentId, call);
      return { agentId, config, source, suspended, isDefault, workspaceDir };
    },

    'agents.create': async ({ agentId, config = AgentConfig.parse({}) }, call) => {
      const { workspaceDir } = await changes.create(agentId, config, call);
      return { agentId, config, created: true as const, workspaceDir };
    },

    'agents.update': async ({ agentId, config: patch, dryRun }, call) => {
      if (dryRun) return { agentId, config: await changes.preview(agentId, patch, call), updated: false, dryRun: true as const };
      return { agentId, config: (await configure({ agentId, patch, action: 'agents.update' }, call)).config, updated: true };
    },

    'agents.delete': async ({ agentId }, call) => {
      await changes.delete(agentId, call);
      return { agentId, deleted: true as const };
    },

    'agents.suspend': async ({ agentId }, call) => ({ agentId: (await changes.setSuspended(agentId, true, call)).id, suspended: true as const }),
    'agents.resume': async ({ agentId }, call) => ({ agentId: (await changes.setSuspended(agentId, false, call)).id, resumed: true as const }),
  };

  return { api, methods, configure, [Symbol.dispose]: () => following[Symbol.dispose]() };
}
