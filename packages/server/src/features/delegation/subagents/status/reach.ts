import { AppError } from '../../../../kernel/app-error.ts';
import { isAdmin, type CallContext } from '../../../../kernel/call-context.ts';
import type { RunRow } from '../run/row.ts';

/** The runs that a call may see: agents those of their conversation, tokens those of their principal, admins all; within the token's agents. */
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

/** Returns whether the caller requested the run. */
export function isRequester(row: Pick<RunRow, 'requesterRef' | 'principalId' | 'graphId'>, call: CallContext): boolean {
  if (call.agentCaller !== undefined) return row.requesterRef === call.agentCaller.conversationRef;
  return row.requesterRef === null && row.principalId === call.identity.principalId;
}

/** Returns whether the caller may see the text of a run: admins, and tokens that own the run; agents see it through their tools. */
export function readsResult(row: Pick<RunRow, 'principalId'>, call: CallContext): boolean {
  return isAdmin(call) || (call.agentCaller === undefined && row.principalId === call.identity.principalId);
}

/** Answers unknown, foreign and malformed ids alike. */
export const unknownRun = (id: string) => new AppError('not_found', `Unknown run ID: ${id}`);

export const notRunning = (id: string) => new AppError('precondition_failed', `The sub-agent is not running: ${id}`);
