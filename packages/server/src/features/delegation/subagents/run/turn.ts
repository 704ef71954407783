import type { CallContext, Identity } from '../../../../kernel/call-context.ts';
import { newId, newTraceId } from '../../../../kernel/ids.ts';
import type { Tool } from '../../../../runtime/tool.ts';
import type { WorkItem } from '../../../unattended/durable/api.ts';
import type { DurableTurn } from '../../../conversations/turns/api.ts';
import { readTarget } from '../completion/announce-target.ts';
import { authorityOf, boundsOf, type RunOptions } from '../requests/options.ts';
import type { LiveRun } from './live-run.ts';
import type { RunRow } from './row.ts';

/** Returns the turn of a run, with the limits of its options. */
export function turnOf(
  { row, item, live }: { readonly row: RunRow; readonly item: WorkItem; readonly live: LiveRun },
  options: RunOptions,
  { extraTools, settle }: { readonly extraTools: readonly Tool[] | undefined; readonly settle: DurableTurn['settle'] },
): DurableTurn {
  const { model } = options;
  const authority = authorityOf(options);
  return {
    workId: item.id,
    owner: item.owner,
    fence: item.fence,
    origin: row.graphId === null ? 'subagent' : 'graph',
    ...(authority !== undefined && { authority }),
    target: { ref: row.conversationRef, sessionKey: row.sessionKey, agentId: row.agentId, principalId: row.principalId },
    message: options.message,
    ...(model !== undefined && { model }),
    timeoutMs: options.timeoutMs,
    maxSteps: options.maxSteps,
    rootRunId: row.rootRunId,
    ...(row.graphId !== null && { refs: { graphId: row.graphId, ...(row.nodeId !== null && { nodeId: row.nodeId }) } }),
    run: { runId: row.id, leaseId: row.leaseId, depth: row.depth },
    toolBounds: boundsOf(options),
    endpoint: readTarget(row).endpoint,
    ...(extraTools !== undefined && { extraTools }),
    ...(live.isNewConversation && { historyTurns: 0 }),
    kept: true,
    operation: 'subagent',
    steering: live,
    settle,
  };
}

/** Returns a call with the identity that a run acts with. */
export const callOf = (identity: Identity, signal: AbortSignal): CallContext => ({
  identity,
  traceId: newTraceId(),
  requestId: newId('rq'),
  signal,
  transport: 'process',
});
