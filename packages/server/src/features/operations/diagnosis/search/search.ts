import type { HandlersOf } from '../../../../kernel/handlers.ts';
import type { ResultInput } from '@gatehouse/contract';
import { agentsOf } from '../callers.ts';
import type { DiagnosisDeps } from '../diagnosis.ts';
import { type FoundRow, searchTraces } from './search-store.ts';
import { parseWhere } from './where.ts';

const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const defaultWindowMs = 2 * 86_400_000;

/** Handler of `obs.trace.search` (json-rpc.md §4). */
export function createTraceSearch({ db, clock, traces, tracedBy }: DiagnosisDeps): HandlersOf<'obs.trace.search'> {
  return {
    'obs.trace.search': async ({ since, where, messageId, traceId, chatId, limit, includeSynthetic }, call) => {
      const agents = agentsOf(call);
      const condition = where === undefined ? null : parseWhere(where);
      await traces.flush();
      const named = { messageId: messageId ?? null, chatId: chatId ?? null };
      const traced = messageId === undefined && chatId === undefined ? { conversationRefs: [], turnIds: [] } : await tracedBy(named);
      const rows = await db.search(searchTraces, {
        fromMs: clock.now() - (since === undefined ? defaultWindowMs : periodMs(since)),
        ...named,
        ...traced,
        traceId: traceId ?? null,
        agents,
        condition,
        includeSynthetic,
        limit,
      });
      return { rows: rows.map(viewOf) };
    },
  };
}

/** The schema allows only a number with one of these units. */
function periodMs(since: string): number {
  return Number(since.slice(0, -1)) * (unitMs[since.slice(-1)] ?? 0);
}

function viewOf(row: FoundRow): ResultInput<'obs.trace.search'>['rows'][number] {
  const { id, kind, outcome, endReason, traceId, sessionKey, messageId, channelType, agentId, origin, rootRunId, model } = row;
  const { modelCalls, toolCalls, toolErrors } = row;
  return {
    id,
    ts: new Date(row.startedAtMs).toISOString(),
    event: `${kind}_${outcome}`,
    kind,
    outcome,
    endReason,
    lastError: row.errorKind,
    traceId,
    sessionId: row.conversationRef,
    sessionKey,
    messageId,
    channelType,
    chatId: row.channelId,
    agentId,
    origin,
    rootRunId,
    model,
    durationMs: Math.max(0, row.endedAtMs - row.startedAtMs),
    tokens: { in: row.inputTokens, out: row.outputTokens, cached: row.cacheReadTokens, cacheWritten: row.cacheWriteTokens },
    costUsd: row.costNano === null ? null : row.costNano / 1e9,
    modelCalls,
    toolCalls,
    toolErrors,
    synthetic: row.synthetic === 1,
  };
}
