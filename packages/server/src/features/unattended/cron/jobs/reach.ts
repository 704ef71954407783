import { AppError } from '../../../../kernel/app-error.ts';
import { isAdmin, ownerOf, type CallContext } from '../../../../kernel/call-context.ts';
import type { AgentsApi } from '../../../agents/agents/api.ts';
import type { JobReach } from './search-store.ts';

/** Returns the jobs visible to a call, within the token's agents: admins see all, tokens their own, agents those of their user with them. */
export function reachOf(call: CallContext): JobReach {
  const agentIds = call.identity.agents ?? null;
  if (call.agentCaller === undefined) return { principalId: isAdmin(call) ? null : ownerOf(call), agentIds };
  const { agentId, principalId } = call.agentCaller;
  return { principalId, agentIds: agentIds === null || agentIds.includes(agentId) ? [agentId] : [] };
}

/** Returns an agent visible to the call; unknown and inaccessible agents fail the same way. */
export function agentFor(agents: Pick<AgentsApi, 'find' | 'defaultId'>, agentId: string | undefined, call: CallContext): string {
  const meant = agentId ?? call.agentCaller?.agentId ?? agents.defaultId;
  if (agents.find(meant) === undefined || reachOf(call).agentIds?.includes(meant) === false)
    throw new AppError('not_found', `Agent not found: ${meant}`, { param: 'agentId' });
  return meant;
}
