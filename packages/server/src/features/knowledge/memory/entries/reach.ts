import { AppError } from '../../../../kernel/app-error.ts';
import { type CallContext, isAdmin, ownerOf } from '../../../../kernel/call-context.ts';
import type { AgentsApi } from '../../../agents/agents/api.ts';
import type { Reach } from './browse-store.ts';

/** Returns the principal whose memories a call reaches; null: of all. */
export const reachedOwner = (call: CallContext): string | null => (isAdmin(call) ? null : ownerOf(call));

/** Agents that a call may reach; null: all. An agent that calls reaches itself. */
function agentsOf({ identity, agentCaller }: CallContext): readonly string[] | null {
  if (agentCaller === undefined) return identity.agents ?? null;
  return identity.agents?.includes(agentCaller.agentId) === false ? [] : [agentCaller.agentId];
}

/** Agents must not rewrite their memories through a tool that acts for an administrator. */
export function refuseAgents(method: string, call: CallContext): void {
  if (call.agentCaller !== undefined) throw new AppError('denied', `${method} is for administrators, not for agents`);
}

/** Returns an agent that the caller may reach; unknown and foreign ones fail alike. */
export function reachableAgent(agents: Pick<AgentsApi, 'find'>, agentId: string, call: CallContext): string {
  const isAllowed = agentsOf(call)?.includes(agentId) ?? true;
  if (!isAllowed || agents.find(agentId) === undefined) throw notFound(agentId);
  return agentId;
}

/** Returns what the caller reaches, of one agent or of all. An operator also reaches data of deleted agents. */
export function reachOf(agents: Pick<AgentsApi, 'find'>, agentId: string | undefined, call: CallContext): Reach {
  const agentIds = agentsOf(call);
  const principalId = reachedOwner(call);
  if (agentId === undefined) return { agentIds, principalId };
  const isAllowed = agentIds?.includes(agentId) ?? true;
  if (!isAllowed || (agents.find(agentId) === undefined && !isAdmin(call))) throw notFound(agentId);
  return { agentIds: [agentId], principalId };
}

const notFound = (agentId: string) => new AppError('not_found', `Agent not found: ${agentId}`, { param: 'agentId' });
