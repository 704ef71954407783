import type { DeliveryStatus, ResultInput } from '@gatehouse/contract';
import type { CallContext } from '../../../../../kernel/call-context.ts';
import type { Db } from '../../../../../kernel/db/db.ts';
import type { HandlersOf } from '../../../../../kernel/handlers.ts';
import { agentsFor, refuseAgents } from '../access.ts';
import type { ViewStart } from '../resets.ts';
import { countLifecycles, type LifecycleRow, listLifecycles } from './delivery-store.ts';

const attemptedStatuses: ReadonlySet<string> = new Set(['success', 'error', 'timeout']);

/** Handlers of `obs.delivery.*`. */
export function createDeliveryReports({
  db,
  since,
  flush,
}: {
  readonly db: Db;
  readonly since: ViewStart;
  /** Resolves when the records of ended work are stored. */
  readonly flush: () => Promise<unknown>;
}): HandlersOf<'obs.delivery.recent' | 'obs.delivery.stats'> {
  async function filterOf(
    { sinceMs, includeSynthetic }: { readonly sinceMs?: number | undefined; readonly includeSynthetic: boolean },
    call: CallContext,
  ) {
    refuseAgents(call);
    await flush();
    const start = await since('delivery', sinceMs);
    // Its own reset is by number, which no change of the clock affects.
    return { sinceMs: start.askedMs, afterSeq: start.upTo, includeSynthetic, agentIds: agentsFor(undefined, call) };
  }
  return {
    'obs.delivery.recent': async ({ limit, channelId, channelType, ...window }, call) => ({
      deliveries: (await db.search(listLifecycles, { ...(await filterOf(window, call)), limit, channelId, channelType })).map(viewOf),
    }),
    'obs.delivery.stats': async (window, call) => {
      const counts = await db.search(countLifecycles, await filterOf(window, call));
      const of = (status: DeliveryStatus) => counts.find((row) => row.status === status)?.count ?? 0;
      const attempted = counts.filter(({ status }) => attemptedStatuses.has(status));
      const attempts = attempted.reduce((sum, { count }) => sum + count, 0);
      const latencyMs = attempted.reduce((sum, row) => sum + row.latencyMs, 0);
      return {
        total: counts.reduce((sum, { count }) => sum + count, 0),
        attempted: attempts,
        success: of('success'),
        error: of('error'),
        timeout: of('timeout'),
        filtered: of('filtered'),
        cancelled: of('cancelled'),
        avgLatencyMs: attempts === 0 ? 0 : latencyMs / attempts,
      };
    },
  };
}

function viewOf(row: LifecycleRow): ResultInput<'obs.delivery.recent'>['deliveries'][number] {
  const { id, channelType, channelId, status, agentId, sessionKey, conversationRef, traceId, errorKind } = row;
  return {
    id,
    channelType,
    channelId,
    status,
    startedAt: row.startedAtMs,
    deliveredAt: row.endedAtMs,
    latencyMs: Math.max(0, row.endedAtMs - row.startedAtMs),
    errorKind,
    agentId,
    sessionKey,
    conversationRef,
    traceId,
    llmCalls: row.modelCalls,
    toolCalls: row.toolCalls,
    tokensTotal: row.inputTokens + row.outputTokens,
    costTotal: row.costNano === null ? null : row.costNano / 1e9,
  };
}
