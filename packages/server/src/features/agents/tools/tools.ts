import { AppError } from '../../../kernel/app-error.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { deferredBy, discoverToolName } from '../../../runtime/discovery.ts';
import type { Tool } from '../../../runtime/tool.ts';
import { backgroundToolName, refuseTool, selectTools } from '../../../runtime/tool-policy.ts';
import type { Agent, AgentsApi } from '../agents/api.ts';

/** Handler of `tools.list`; `toolsOf` returns all tools of the installation for an agent, whatever its policy says. */
export function createToolMethods(deps: {
  readonly agents: AgentsApi;
  readonly toolsOf: (agent: Agent) => readonly Tool[];
}): HandlersOf<'tools.list'> {
  return {
    'tools.list': async ({ agentId = deps.agents.defaultId, origin }, { identity }) => {
      const agent = deps.agents.find(agentId);
      // A token limited to some agents learns about no other.
      if (agent === undefined || identity.agents?.includes(agentId) === false)
        throw new AppError('not_found', `Agent not found: ${agentId}`, { param: 'agentId' });
      const all = deps.toolsOf(agent);
      const offered = selectTools(all, agent.config, origin);
      const discover = offered.find(({ name }) => name === discoverToolName);
      const deferred = deferredBy(discover);
      const tools = [...all, ...(discover === undefined ? [] : [discover])].flatMap((tool) => {
        const { name, description, source = 'builtin', risk, effect, timeoutMs } = tool;
        const refusal = refuseTool(tool, agent.config, origin);
        // Useful, and so offered, only where calls may continue in the background.
        if (name === backgroundToolName && refusal === undefined && !offered.includes(tool)) return [];
        return {
          name,
          description,
          source,
          risk,
          effect,
          timeoutMs,
          allowed: refusal === undefined,
          ...(refusal !== undefined && { refusal }),
          deferred: deferred.has(name),
        };
      });
      return { tools, total: tools.length };
    },
  };
}
