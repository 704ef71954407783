import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';

/** Reports cover everybody's work: they are for administrators, never for an agent that acts for one. */
export function refuseAgents(call: CallContext): void {
  if (call.agentCaller !== undefined) throw new AppError('denied', 'Reports are for administrators, not for agents');
}

/** Returns the only agents that a caller may see, or the requested one of them; null: all. */
export function agentsFor(asked: string | undefined, { identity }: CallContext): readonly string[] | null {
  const bound = identity.agents;
  if (asked === undefined) return bound ?? null;
  if (bound?.includes(asked) === false) throw new AppError('not_found', `Agent not found: ${asked}`, { param: 'agentId' });
  return [asked];
}
