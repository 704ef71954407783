import type { TraceStep } from '@gatehouse/contract';
import { channelOf } from '../../../../kernel/gateway-channel.ts';
import { totalCost } from '../../../../llm/price.ts';
import { addCost, addTokens } from '../../../../runtime/turn-trace.ts';
import type { MadeTurn, MadeWork } from '../../../access/budgets/api.ts';
import type { EndedRecord } from '../../../operations/traces/api.ts';

/** Returns what is known of a turn that was killed with its process: the model calls that had been noted. */
export function toKilledRecord({ id, agentId, principalId, conversationRef, calls }: MadeWork, turn: MadeTurn): EndedRecord {
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
  const nothing = { in: 0, out: 0, cached: 0, cacheWritten: 0 };
  return {
    id,
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
    refs: {},
    facts: { steps: calls.filter(({ outcome }) => outcome === 'ok').length, delivered: false },
    steps,
    droppedSteps: 0,
  };
}
