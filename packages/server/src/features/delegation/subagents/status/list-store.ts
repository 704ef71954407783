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
      let from = db.selectFrom('subAgentRun').where((where) => where.or([where('endedAtMs', 'is', null), where('endedAtMs', '>=', sinceMs)]));
      if (principalId !== null) from = from.where('principalId', '=', principalId);
      if (requesterRef !== null) from = from.where('requesterRef', '=', requesterRef);
      if (agentIds !== null) from = from.where('agentId', 'in', agentIds);
      if (agentId !== null) from = from.where('agentId', '=', agentId);
      if (rootRunId !== null) from = from.where('rootRunId', '=', rootRunId);
      return from.select(runColumns).orderBy('queuedAtMs', 'desc').orderBy('id', 'desc').limit(limit);
    }),
);

/** Finds which of these runs the caller may see, in a single query whether they exist or not. */
export const findRuns = operation(
  'subagents.findMany',
  (tx, { principalId, requesterRef, agentIds, ids }: RunReach & { readonly ids: readonly string[] }): Promise<RunRow[]> =>
    tx.build<RunRow>((db) => {
      let from = db.selectFrom('subAgentRun').where('id', 'in', ids);
      if (principalId !== null) from = from.where('principalId', '=', principalId);
      if (requesterRef !== null) from = from.where('requesterRef', '=', requesterRef);
      if (agentIds !== null) from = from.where('agentId', 'in', agentIds);
      return from.select(runColumns);
    }),
);

export const subagentListOperations = [listRuns, findRuns];
