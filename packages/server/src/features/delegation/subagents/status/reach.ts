import { AppError } from '../../../../kernel/app-error.ts';
import { isAdmin, type CallContext } from '../../../../kernel/call-context.ts';
import type { RunRow } from '../run/row.ts';

/** The runs that a call may see: an agent those that its own conversation asked for, a token those of its principal, an admin all; within the agents of the token. */
export interface RunReach {
  readonly principalId: string | null;
  readonly requesterRef: string | null;
  readonly agentIds: readonly string[] | null;
}

export function reachOf(call: CallContext): RunReach {
  const agentIds = call.identity.agents ?? null;
  const { agentCaller } = call;
  if (agentCaller !== undefined) return { principalId: agentCaller.principalId, requesterRef: agentCaller.conversationRef, agentIds };
  return { principalId: isAdmin(call) ? null : call.identity.principalId, requesterRef: null, agentIds };
}

/** Whether the call is by whoever asked for the run. */
export function isRequester(row: Pick<RunRow, 'requesterRef' | 'principalId' | 'graphId'>, call: CallContext): boolean {
  if (call.agentCaller !== undefined) return row.requesterRef === call.agentCaller.conversationRef;
  return row.requesterRef === null && row.principalId === call.identity.principalId;
}

/** Whether the caller may see what a run said: an admin, and a token of the runs that it owns; agents are shown it by their tools. */
export function readsResult(row: Pick<RunRow, 'principalId'>, call: CallContext): boolean {
  return isAdmin(call) || (call.agentCaller === undefined && row.principalId === call.identity.principalId);
}

/** One for what is unknown, foreign, or no id at all. */
export const unknownRun = (id: string) => new AppError('not_found', `Unknown run ID: ${id}`);

export const notRunning = (id: string) => new AppError('precondition_failed', `The sub-agent is not running: ${id}`);
