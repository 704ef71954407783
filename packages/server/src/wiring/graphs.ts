import { endWorkWithMessage } from '../transactions/end-interrupted-turn.ts';
import { createGraphs } from '../features/delegation/graph/graph.ts';
import type { SubagentsApi } from '../features/delegation/subagents/api.ts';
import { acceptGraph, closeGraph, graphsOfRoot, moveGraphNodes } from '../transactions/graph-work.ts';
import { AppError } from '../kernel/app-error.ts';
import type { DelegationDeps } from './delegation.ts';

/** Wires graphs of agents to what they use. */
export function wireGraphs({ options, ...deps }: DelegationDeps & { readonly subagents: SubagentsApi }) {
  const { enabled, allowAgents, graphMaxConcurrency, subagentContext } = options.config.security.agentToAgent;
  return createGraphs({
    ...deps,
    log: options.log.module('graphs'),
    concurrency: graphMaxConcurrency,
    maxDepth: subagentContext.maxSpawnDepth,
    assertCanDelegate({ agentCaller }) {
      if (agentCaller !== undefined && !enabled) throw new AppError('denied', 'Agents may not start other agents (security.agentToAgent.enabled)');
      const refusal = deps.subagents.refusal();
      if (refusal !== undefined) throw refusal;
    },
    assertCanStart(agentId, { agentCaller }) {
      if (agentCaller === undefined || agentId === agentCaller.agentId || allowAgents.length === 0 || allowAgents.includes(agentId)) return;
      throw new AppError('denied', `Sub-agents of agent ${agentId} are not allowed here`);
    },
    operations: { accept: acceptGraph, move: moveGraphNodes, close: closeGraph, endWithMessage: endWorkWithMessage, ofRoot: graphsOfRoot },
  });
}
