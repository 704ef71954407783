import type { TracedError, TracedTokens, TraceOutcome, TraceRecord } from '@gatehouse/contract';
import type { CallingTurn } from '../../../../kernel/call-context.ts';
import { addCost, addTokens, tokensOf, type TurnTrace } from '../../../../runtime/turn-trace.ts';
import type { TurnResult } from '../../../../runtime/turn.ts';
import { channelOf } from '../../../../kernel/gateway-channel.ts';
import { tierOf } from '../../../../llm/model-tier.ts';
import { totalCost } from '../../../../llm/price.ts';
import type { DurableTurn } from '../api.ts';
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

/** Returns what durable work belongs to. */
export function refsOf({ workId, refs }: Pick<DurableTurn, 'workId' | 'refs'>, { run }: Pick<CallingTurn, 'run'>): Record<string, string> {
  return { ...(run !== undefined && { runId: run.runId, leaseId: run.leaseId }), workId, ...refs };
}

/** A record while it is made: fields are set instead of copied, because every turn makes one. */
type Draft = { -readonly [Key in keyof TraceRecord]: TraceRecord[Key] };

/** Returns a turn that runs, with the steps so far. */
export const toRunningRecord = (traced: TracedTurn): TraceRecord => draftOf(traced);

function draftOf(traced: TracedTurn): Draft {
  const { turn, begun, trace } = traced;
  const { start, calling } = begun;
  const { target, durable } = turn;
  const draft: Draft = {
    id: recordIdOf(traced),
    kind: 'turn',
    traceId: start.traceId,
    agentId: start.agentId,
    principalId: start.principalId,
    origin: turn.origin,
    messageId: `ms_${start.id}`,
    startedAtMs: trace.startedAtMs,
    endedAtMs: null,
    outcome: null,
    endReason: null,
    error: null,
    model: null,
    modelCalls: 0,
    toolCalls: 0,
    toolErrors: 0,
    costNano: 0,
    tokens: nothingUsed,
    synthetic: isSynthetic(turn),
    refs: durable === undefined ? {} : refsOf(durable.turn, calling),
    facts: {},
    steps: trace.steps,
    droppedSteps: trace.dropped,
  };
  countSteps(draft);
  if (calling.rootRunId !== `root-turn-${start.id}`) draft.rootRunId = calling.rootRunId;
  if (turn.kept) {
    draft.conversationRef = target.ref;
    draft.sessionKey = target.sessionKey;
  }
  const channel = channelOf(turn.origin, target.sessionKey);
  if (channel !== undefined) {
    draft.channelType = channel.channelType;
    draft.channelId = channel.channelId;
  }
  return draft;
}

/** Returns one run of a turn as the trace keeps it. */
export function toTurnRecord({ endedAtMs, result, fault, ...traced }: EndedTurnTrace): EndedRecord {
  const { turn, trace } = traced;
  trace.close();
  const draft = draftOf(traced);
  const { steps, leftOut = 0, effectsRefused = 0, waiting, failure, tainted } = result;
  for (const call of result.calls) {
    draft.tokens = addTokens(draft.tokens, tokensOf(call));
    draft.costNano = addCost(draft.costNano, call.cost === null ? null : totalCost(call.cost));
  }
  const model = `${result.model.provider}/${result.model.modelId}`;
  const primary = turn.ask.models[0];
  const isReplaced = primary !== undefined && model !== `${primary.provider}/${primary.modelId}`;
  const isDegraded = draft.toolErrors > 0 || isReplaced || leftOut > 0 || effectsRefused > 0;
  const facts: Record<string, string | number | boolean> = {
    steps,
    tainted,
    tier: tierOf(result.model),
    delivered: fault === undefined && waiting === undefined && failure === undefined,
  };
  if (leftOut > 0) facts['leftOut'] = leftOut;
  if (effectsRefused > 0) facts['effectsRefused'] = effectsRefused;
  if (turn.durable?.isResumed === true) facts['resumed'] = true;
  if (isReplaced) facts['servedBelowConfigured'] = 'model';
  draft.endReason = result.finishReason;
  draft.error = fault === undefined ? errorOf(result, trace, endedAtMs) : { kind: fault };
  draft.model = model;
  draft.facts = facts;
  if (waiting !== undefined) draft.refs = { ...draft.refs, approvalId: waiting.approvalId };
  return Object.assign(draft, { endedAtMs, outcome: outcomeOf(result, fault, isDegraded) });
}

const nothingUsed: TracedTokens = { in: 0, out: 0, cached: 0, cacheWritten: 0 };

function countSteps(draft: Draft): void {
  for (const { kind, outcome } of draft.steps) {
    if (kind === 'attempt') draft.modelCalls += 1;
    // A call with a pending approval is made by a later run of the turn.
    if (kind !== 'tool' || outcome === 'waiting') continue;
    draft.toolCalls += 1;
    if (outcome === 'error' || outcome === 'denied') draft.toolErrors += 1;
  }
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
