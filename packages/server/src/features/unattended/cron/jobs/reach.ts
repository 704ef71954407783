import { AppError } from '../../../../kernel/app-error.ts';
import { isAdmin, ownerOf, type CallContext } from '../../../../kernel/call-context.ts';
import type { AgentsApi } from '../../../agents/agents/api.ts';
import type { JobReach } from './search-store.ts';

/** The jobs that a call may see: a token those that it made, an agent those of whoever it works for with itself, an admin all; within the agents of the token. */
export function reachOf(call: CallContext): JobReach {
  const agentIds = call.identity.agents ?? null;
  if (call.agentCaller === undefined) return { principalId: isAdmin(call) ? null : ownerOf(call), agentIds };
  const { agentId, principalId } = call.agentCaller;
  return { principalId, agentIds: agentIds === null || agentIds.includes(agentId) ? [agentId] : [] };
}

/** An agent that the call may reach; unknown and foreign ones answer alike. */
export function agentFor(agents: Pick<AgentsApi, 'find' | 'defaultId'>, agentId: string | undefined, call: CallContext): string {
  const meant = agentId ?? call.agentCaller?.agentId ?? agents.defaultId;
  if (agents.find(meant) === undefined || reachOf(call).agentIds?.includes(meant) === false)
    throw new AppError('not_found', `Agent not found: ${meant}`, { param: 'agentId' });
  return meant;
}
