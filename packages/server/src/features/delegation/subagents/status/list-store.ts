import { operation } from '../../../../kernel/db/operation.ts';
import type { RunReach } from './reach.ts';
import { type RunRow, runColumns } from '../run/row.ts';

interface Page extends RunReach {
  readonly agentId: string | null;
  readonly rootRunId: string | null;
  /** Runs that ended before this time are omitted. */
  readonly sinceMs: number;
  readonly limit: number;
}

/** Lists the runs that the caller may see, newest first. */
export const listRuns = operation(
  'subagents.list',
  (tx, { principalId, requesterRef, agentIds, agentId, rootRunId, sinceMs, limit }: Page): Promise<RunRow[]> =>
    tx.build<RunRow>((db) => {
      let from = db.selectFrom('sub_agent_run').where((where) => where.or([where('ended_at_ms', 'is', null), where('ended_at_ms', '>=', sinceMs)]));
      if (principalId !== null) from = from.where('principal_id', '=', principalId);
      if (requesterRef !== null) from = from.where('requester_ref', '=', requesterRef);
      if (agentIds !== null) from = from.where('agent_id', 'in', agentIds);
      if (agentId !== null) from = from.where('agent_id', '=', agentId);
      if (rootRunId !== null) from = from.where('root_run_id', '=', rootRunId);
      return from.select(runColumns).orderBy('queued_at_ms', 'desc').orderBy('id', 'desc').limit(limit);
    }),
);

/** Finds which of these runs the caller may see, in a single query whether they exist or not. */
export const findRuns = operation(
  'subagents.findMany',
  (tx, { principalId, requesterRef, agentIds, ids }: RunReach & { readonly ids: readonly string[] }): Promise<RunRow[]> =>
    tx.build<RunRow>((db) => {
      let from = db.selectFrom('sub_agent_run').where('id', 'in', ids);
      if (principalId !== null) from = from.where('principal_id', '=', principalId);
      if (requesterRef !== null) from = from.where('requester_ref', '=', requesterRef);
      if (agentIds !== null) from = from.where('agent_id', 'in', agentIds);
      return from.select(runColumns);
    }),
);

export const subagentListOperations = [listRuns, findRuns];
