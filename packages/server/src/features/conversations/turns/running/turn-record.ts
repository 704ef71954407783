import type { TracedError, TracedTokens, TraceOutcome, TraceRecord } from '@gatehouse/contract';
import { addCost, addTokens, tokensOf, type TurnTrace } from '../../../../runtime/turn-trace.ts';
import type { TurnResult } from '../../../../runtime/turn.ts';
import { channelOf } from '../../../../kernel/gateway-channel.ts';
import { tierOf } from '../../../../llm/model-tier.ts';
import { totalCost } from '../../../../llm/price.ts';
import type { EndedRecord } from '../../../operations/traces/api.ts';
import { type PreparedTurn, type BegunTurn, isSynthetic } from './turn-input.ts';

export interface TracedTurn {
  readonly turn: PreparedTurn;
  readonly begun: BegunTurn;
  readonly trace: TurnTrace;
}

export interface EndedTurnTrace extends TracedTurn {
  readonly endedAtMs: number;
  readonly result: TurnResult;
  /** Why the result could not be stored. */
  readonly fault?: string;
}

/** Returns the id of the record of one run of a turn: a turn that was resumed has several. */
export function recordIdOf({ turn, begun, trace }: TracedTurn): string {
  return turn.durable?.isResumed === true ? `${begun.start.id}.${trace.startedAtMs}` : begun.start.id;
}

/** Returns a turn that runs, with the steps so far. */
export function toRunningRecord(traced: TracedTurn): TraceRecord {
  const { turn, begun, trace } = traced;
  const { start, calling } = begun;
  const { target, durable } = turn;
  return {
    id: recordIdOf(traced),
    kind: 'turn',
    traceId: start.traceId,
    ...(calling.rootRunId !== `root-turn-${start.id}` && { rootRunId: calling.rootRunId }),
    ...(turn.kept && { conversationRef: target.ref, sessionKey: target.sessionKey }),
    agentId: start.agentId,
    principalId: start.principalId,
    origin: turn.origin,
    messageId: `ms_${start.id}`,
    ...channelOf(turn.origin, target.sessionKey),
    startedAtMs: trace.startedAtMs,
    endedAtMs: null,
    outcome: null,
    endReason: null,
    error: null,
    model: null,
    ...countsOf(trace),
    costNano: 0,
    tokens: nothingUsed,
    synthetic: isSynthetic(turn),
    refs: {
      ...(calling.run !== undefined && { runId: calling.run.runId, leaseId: calling.run.leaseId }),
      ...(durable !== undefined && { workId: durable.turn.workId, ...durable.turn.refs }),
    },
    facts: {},
    steps: trace.steps,
    droppedSteps: trace.dropped,
  };
}

/** Returns one run of a turn as the trace keeps it. */
export function toTurnRecord({ endedAtMs, result, fault, ...traced }: EndedTurnTrace): EndedRecord {
  const { turn, trace } = traced;
  const running = toRunningRecord(traced);
  let tokens = nothingUsed;
  let costNano: number | null = 0;
  for (const call of result.calls) {
    tokens = addTokens(tokens, tokensOf(call));
    costNano = addCost(costNano, call.cost === null ? null : totalCost(call.cost));
  }
  const model = `${result.model.provider}/${result.model.modelId}`;
  const primary = turn.ask.models[0];
  const isReplaced = primary !== undefined && model !== `${primary.provider}/${primary.modelId}`;
  const { steps, leftOut = 0, effectsRefused = 0 } = result;
  const isDegraded = running.toolErrors > 0 || isReplaced || leftOut > 0 || effectsRefused > 0;
  return {
    ...running,
    endedAtMs,
    outcome: outcomeOf(result, fault, isDegraded),
    endReason: result.finishReason,
    error: fault === undefined ? errorOf(result, trace, endedAtMs) : { kind: fault },
    model,
    tokens,
    costNano,
    refs: { ...running.refs, ...(result.waiting !== undefined && { approvalId: result.waiting.approvalId }) },
    facts: {
      steps,
      tainted: result.tainted,
      tier: tierOf(result.model),
      delivered: fault === undefined && result.waiting === undefined && result.failure === undefined,
      ...(leftOut > 0 && { leftOut }),
      ...(effectsRefused > 0 && { effectsRefused }),
      ...(turn.durable?.isResumed === true && { resumed: true }),
      ...(isReplaced && { servedBelowConfigured: 'model' }),
    },
  };
}

const nothingUsed: TracedTokens = { in: 0, out: 0, cached: 0, cacheWritten: 0 };

function countsOf({ steps }: TurnTrace): Pick<TraceRecord, 'modelCalls' | 'toolCalls' | 'toolErrors'> {
  const counts = { modelCalls: 0, toolCalls: 0, toolErrors: 0 };
  for (const { kind, outcome } of steps) {
    if (kind === 'attempt') counts.modelCalls += 1;
    // A call with a pending approval is made by a later run of the turn.
    if (kind !== 'tool' || outcome === 'waiting') continue;
    counts.toolCalls += 1;
    if (outcome === 'error' || outcome === 'denied') counts.toolErrors += 1;
  }
  return counts;
}

function errorOf({ failure }: TurnResult, trace: TurnTrace, endedAtMs: number): TracedError | null {
  if (failure === undefined) return null;
  const text = trace.sentence(failure.cause ?? failure.message);
  return {
    kind: failure.kind,
    ...(text !== undefined && { text }),
    ...(failure.retryAfterMs !== undefined && { retryAtMs: Math.round(endedAtMs + failure.retryAfterMs) }),
  };
}

function outcomeOf({ waiting, finishReason, failure }: TurnResult, fault: string | undefined, isDegraded: boolean): TraceOutcome {
  if (fault !== undefined) return 'failed';
  if (waiting !== undefined) return 'waiting';
  if (finishReason === 'aborted') return 'cancelled';
  if (failure !== undefined) return 'failed';
  return isDegraded ? 'degraded' : 'ok';
}
