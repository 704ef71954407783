import { AppError } from '../../../../kernel/app-error.ts';
import { isAdmin, ownerOf, type CallContext } from '../../../../kernel/call-context.ts';
import type { GraphReach } from './read-store.ts';
import type { SavedReach } from '../definition/saved-store.ts';

/** The runs that a call may see: tokens their own, agents those that they started for their principal, admins all; within the token's agents. */
export function reachOf(call: CallContext): GraphReach {
  const agentIds = call.identity.agents ?? null;
  if (call.agentCaller === undefined) return { principalId: isAdmin(call) ? null : ownerOf(call), agentIds, byAgent: false };
  const { agentId, principalId } = call.agentCaller;
  return { principalId, agentIds: agentIds === null || agentIds.includes(agentId) ? [agentId] : [], byAgent: true };
}

/** The saved graphs that a call may see, or change. */
export function savedReachOf(call: CallContext, isChange: boolean): SavedReach {
  return {
    principalId: isAdmin(call) ? null : ownerOf(call),
    agentId: call.agentCaller?.agentId ?? null,
    agentIds: call.identity.agents ?? null,
    isChange,
  };
}

/** Answers unknown and foreign graphs alike. */
export const notFound = () => new AppError('not_found', 'Graph not found', { param: 'graphId' });
export const savedNotFound = () => new AppError('not_found', 'Saved graph not found', { param: 'id' });
