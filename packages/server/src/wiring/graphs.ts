import { endWorkWithMessage } from '../transactions/end-interrupted-turn.ts';
import { createGraphs } from '../features/delegation/graph/graph.ts';
import type { SubagentsApi } from '../features/delegation/subagents/api.ts';
import { acceptGraph, closeGraph, graphsOfRoot, moveGraphNodes } from '../transactions/graph-work.ts';
import { AppError } from '../kernel/app-error.ts';
import type { TeamsDeps } from './delegation.ts';

/** Graphs of agents, with what they act with. */
export function createGraphPart({ options, ...deps }: TeamsDeps & { readonly subagents: SubagentsApi }) {
  const { enabled, allowAgents, graphMaxConcurrency, subagentContext } = options.config.security.agentToAgent;
  return createGraphs({
    ...deps,
    log: options.log.module('graphs'),
    concurrency: graphMaxConcurrency,
    maxDepth: subagentContext.maxSpawnDepth,
    mayDelegate({ agentCaller }) {
      if (agentCaller !== undefined && !enabled) throw new AppError('denied', 'Agents may not set others to work (security.agentToAgent.enabled)');
      const refusal = deps.subagents.refusal();
      if (refusal !== undefined) throw refusal;
    },
    mayAsk(agentId, { agentCaller }) {
      if (agentCaller === undefined || agentId === agentCaller.agentId || allowAgents.length === 0 || allowAgents.includes(agentId)) return;
      throw new AppError('denied', `Sub-agents of agent ${agentId} are not allowed here`);
    },
    operations: { accept: acceptGraph, move: moveGraphNodes, close: closeGraph, endWithMessage: endWorkWithMessage, ofRoot: graphsOfRoot },
  });
}
