import type { TraceKind, TraceStep } from '@gatehouse/contract';
import { channelOf } from '../../../../kernel/gateway-channel.ts';
import { totalCost } from '../../../../llm/price.ts';
import { addCost, addTokens } from '../../../../runtime/turn-trace.ts';
import type { MadeTurn, MadeWork } from '../../../access/budgets/api.ts';
import type { TracedWork } from '../../../../kernel/work-trace.ts';
import type { KilledWork } from '../../../access/budgets/api.ts';
import type { EndedRecord } from '../../../operations/traces/api.ts';

const nothing = { in: 0, out: 0, cached: 0, cacheWritten: 0 };

/** Returns what is known of a turn that was killed with its process: the model calls that had been noted, and what else it may have spent. */
export function toKilledRecord(
  { id, agentId, principalId, conversationRef, calls: all, earlier = 0 }: MadeWork,
  turn: MadeTurn,
  lostNano = 0,
): EndedRecord {
  const calls = all.slice(earlier);
  const { sessionKey, origin, traceId, startedAtMs } = turn;
  const channel = channelOf(origin, sessionKey);
  const last = calls.at(-1);
  const steps = calls.map(({ provider, modelId, usage, cost, latencyMs, startedAtMs: atMs, outcome }, number): TraceStep => ({
    id: number,
    kind: 'attempt',
    name: `${provider}/${modelId}`,
    at: Math.max(0, Math.round(atMs - startedAtMs)),
    ms: Math.round(latencyMs),
    outcome,
    tokens: { in: usage.input, out: usage.output, cached: usage.cacheRead, cacheWritten: usage.cacheWrite },
    costNano: cost === null ? null : totalCost(cost),
  }));
  if (lostNano > 0) steps.push(lostStep(calls.length, lostNano));
  return {
    id: turn.recordId ?? id,
    kind: 'turn',
    traceId,
    ...(conversationRef !== null && { conversationRef, sessionKey }),
    agentId,
    principalId,
    origin,
    messageId: `ms_${id}`,
    ...channel,
    startedAtMs,
    endedAtMs: Math.max(startedAtMs, ...steps.map(({ at, ms = 0 }) => startedAtMs + at + ms)),
    outcome: 'failed',
    endReason: 'unknown',
    error: { kind: 'interrupted', text: 'The daemon was killed during this turn: what it did after its last model call is unknown.' },
    model: last === undefined ? null : `${last.provider}/${last.modelId}`,
    modelCalls: calls.length,
    toolCalls: 0,
    toolErrors: 0,
    tokens: steps.reduce((sum, { tokens = nothing }) => addTokens(sum, tokens), nothing),
    costNano: steps.reduce<number | null>((sum, { costNano = 0 }) => addCost(sum, costNano), 0),
    synthetic: turn.synthetic === true,
    ...(turn.rootRunId !== undefined && { rootRunId: turn.rootRunId }),
    refs: turn.refs ?? {},
    facts: { steps: calls.filter(({ outcome }) => outcome === 'ok').length, delivered: false },
    steps,
    droppedSteps: 0,
  };
}

/** A call that had begun: its reserve counts as spent. */
const lostStep = (id: number, costNano: number): TraceStep => ({ id, kind: 'attempt', name: 'unknown', at: 0, ms: 0, outcome: 'error', costNano });

const kinds: Readonly<Record<string, TraceKind>> = { memoryReview: 'review', vision: 'media', embedding: 'embedding' };
const media: ReadonlySet<string> = new Set(['transcription', 'speech', 'imageGeneration', 'video']);

/** Returns the record of what a killed process booked nowhere and noted no beginning of: background work, or a turn of another home. */
export function toLostRecord({ id, part, origin, calls, lostNano, ...work }: KilledWork): TracedWork {
  const isTurn = id.startsWith('tn_');
  const steps = calls.map(
    ({ provider, model, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, costNano, latencyMs, outcome }, number): TraceStep => ({
      id: number,
      kind: 'attempt',
      name: `${provider}/${model}`,
      at: 0,
      ms: latencyMs,
      outcome,
      tokens: { in: inputTokens, out: outputTokens, cached: cacheReadTokens, cacheWritten: cacheWriteTokens },
      costNano,
    }),
  );
  if (lostNano > 0) steps.push(lostStep(calls.length, lostNano));
  const { rootRunId, runId, node } = part;
  return {
    ...work,
    ...(isTurn && { id, messageId: `ms_${id}` }),
    kind: isTurn ? 'turn' : media.has(origin) ? 'media' : (kinds[origin] ?? 'compaction'),
    ...(rootRunId !== undefined && { rootRunId }),
    outcome: 'failed',
    endReason: 'unknown',
    error: { kind: 'interrupted' },
    modelCalls: calls.length,
    tokens: steps.reduce((sum, { tokens = nothing }) => addTokens(sum, tokens), nothing),
    costNano: steps.reduce<number | null>((sum, { costNano = 0 }) => addCost(sum, costNano), 0),
    synthetic: origin === 'evaluation',
    refs: { ...(runId !== undefined && { runId }), ...node },
    facts: { operation: origin },
    steps,
  };
}
