import type { EventKind, EventPayload } from '@gatehouse/contract';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { TracedWork, TraceWork } from '../../../kernel/work-trace.ts';

type Recorded = { readonly [Kind in EventKind]?: (payload: EventPayload<Kind>) => TracedWork | undefined };

/** Returns the turn that started a root run, as its cause. */
const causeOf = (rootRunId: string) => ({ rootRunId, ...(rootRunId.startsWith('root-turn-') && { parentId: rootRunId.slice('root-turn-'.length) }) });

/** What happened outside of turns, or to several of them, and is announced by an event that has everything a record needs. */
const records: Recorded = {
  'autonomy:revoked': ({ rootRunId, revoked }) => ({
    kind: 'autonomy',
    ...causeOf(rootRunId),
    outcome: 'cancelled',
    endReason: 'revoked',
    facts: { event: 'revoked', leases: revoked },
  }),
  'autonomy:killed': ({ rootRunId, killed }) => ({
    kind: 'autonomy',
    ...causeOf(rootRunId),
    outcome: 'cancelled',
    endReason: 'killed',
    facts: { event: 'killed', stopped: killed },
  }),
  'autonomy:denial_breaker': ({ agentId, rootRunId, turnId, denials }) => ({
    kind: 'autonomy',
    agentId,
    rootRunId,
    parentId: turnId,
    outcome: 'failed',
    endReason: 'denial_breaker',
    facts: { event: 'denial_breaker', denials },
  }),
  'session:sub_agent_spawn_started': ({ resumed, runId, rootRunId, agentId, graphId }) =>
    // The nodes of a graph are resumed with it.
    resumed && graphId === undefined
      ? {
          kind: 'autonomy',
          agentId,
          ...causeOf(rootRunId),
          outcome: 'ok',
          endReason: 'resumed',
          refs: { runId },
          facts: { event: 'resumed' },
        }
      : undefined,
  'graph:started': ({ resumed, graphId, agentId }) =>
    resumed ? { kind: 'autonomy', agentId, outcome: 'ok', endReason: 'resumed', refs: { graphId }, facts: { event: 'resumed' } } : undefined,
  'graph:completed': ({ cancelReason, graphId, agentId }) =>
    cancelReason === 'budget'
      ? { kind: 'autonomy', agentId, outcome: 'failed', endReason: 'budget_breach', refs: { graphId }, facts: { event: 'budget_breach' } }
      : undefined,
  'pipeline:authored': ({ agentId, action, valid, nodeCount, typedNodeCount, warningCount, errorCount, tier }) => ({
    kind: 'pipeline',
    agentId,
    outcome: valid ? 'ok' : 'failed',
    endReason: valid ? 'valid' : 'invalid',
    facts: { action, valid, nodeCount, typedNodeCount, warningCount, errorCount, ...(tier !== undefined && { tier }) },
  }),
  'orchestrate:run_summary': ({
    agentId,
    runId,
    leaseId,
    rootRunId,
    outcome,
    failureClass,
    durationMs,
    toolCalls,
    resultRefs,
    savings,
    timestamp,
  }) => ({
    kind: 'orchestrate',
    agentId,
    ...causeOf(rootRunId),
    startedAtMs: timestamp - durationMs,
    endedAtMs: timestamp,
    outcome: outcome === 'ok' ? 'ok' : 'failed',
    endReason: failureClass ?? outcome,
    error: outcome === 'ok' ? null : { kind: failureClass ?? 'failed' },
    toolCalls: toolCalls.reduce((sum, { count }) => sum + count, 0),
    toolErrors: toolCalls.reduce((sum, { count, decision }) => sum + (decision === 'deny' ? count : 0), 0),
    refs: { runId, leaseId },
    facts: { results: resultRefs.count, resultBytes: resultRefs.bytes, savedTokens: savings.estSavedTokens, savedRatio: savings.savedRatio },
  }),
  'reflect:funnel': ({ agentId, conversationsReviewed, extracted, duplicates, rejected, admitted, durationMs, timestamp }) => ({
    kind: 'review',
    agentId,
    startedAtMs: Math.round(timestamp - durationMs),
    endedAtMs: timestamp,
    outcome: conversationsReviewed === 0 ? 'skipped' : 'ok',
    endReason: 'reviewed',
    facts: { conversationsReviewed, extracted, duplicates, rejected, admitted },
  }),
  'inbox:message': ({ id, source, level, agentId, conversationRef }) => ({
    kind: 'delivery',
    agentId,
    ...(conversationRef !== null && { conversationRef }),
    channelType: 'gateway',
    channelId: 'inbox',
    outcome: 'ok',
    endReason: 'success',
    refs: { deliveryId: id },
    facts: { source, level },
  }),
  'provider:degraded': ({ provider, failingAgents }) => ({
    kind: 'breaker',
    outcome: 'failed',
    endReason: 'degraded',
    facts: { event: 'opened', provider, failingAgents },
  }),
  'provider:recovered': ({ provider }) => ({ kind: 'breaker', outcome: 'ok', endReason: 'recovered', facts: { event: 'reset', provider } }),
  'model:auth_cooldown': ({ provider, keyName, cooldownMs, failureCount }) => ({
    kind: 'breaker',
    outcome: 'failed',
    endReason: 'cooldown',
    facts: { event: 'opened', provider, keyName, cooldownMs, failures: failureCount },
  }),
};

/** Records events that belong to no running turn; the owner of the event is that of its record. */
export function recordEvents(bus: EventBus, record: TraceWork): Disposable {
  const stop = bus.listen(Object.keys(records) as readonly EventKind[], ({ kind, payload, owner }) => {
    // The table pairs each kind with its payload.
    const toWork = records[kind] as ((payload: unknown) => TracedWork | undefined) | undefined;
    const work = toWork?.(payload);
    if (work !== undefined) record(owner === undefined ? work : { principalId: owner, ...work });
  });
  return { [Symbol.dispose]: stop };
}
