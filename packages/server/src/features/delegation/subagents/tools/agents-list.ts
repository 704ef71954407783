import * as z from 'zod';
import type { Live } from '../../../../kernel/config/live.ts';
import type { Tool } from '../../../../runtime/tool.ts';
import type { AgentsApi } from '../../../agents/agents/api.ts';
import type { AgentToAgentConfig } from '../config.ts';

/** Creates `agents_list`: the agents that the caller can start as sub-agents. */
export function createAgentsListTool(agents: Pick<AgentsApi, 'list'>, config: Live<Pick<AgentToAgentConfig, 'allowAgents'>>): Tool {
  return {
    name: 'agents_list',
    description: 'Lists the agents that sessions_spawn can start.',
    args: z.strictObject({}),
    risk: 'read',
    readsPrivate: false,
    effect: 'pure',
    timeoutMs: 10_000,
    async run(_, { agentId, call }) {
      const { allowAgents } = config.current;
      const may = agents
        .list()
        .filter(({ id, suspended }) => !suspended && (call.identity.agents?.includes(id) ?? true))
        .filter(({ id }) => id === agentId || allowAgents.length === 0 || allowAgents.includes(id));
      return { content: may.map(({ id, config: { name } }) => `${id}: ${name}${id === agentId ? ' (you)' : ''}`).join('\n') };
    },
  };
}
