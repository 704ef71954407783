import type { ModelMessage } from '../../llm/model.ts';
import { encodeToolColumn } from '../../runtime/stored-message.ts';
import type { CallRecord, TurnResult } from '../../runtime/turn.ts';
import type { ModelCallRow, TurnCommit, TurnRow, TurnState } from './store.ts';

/** What is known of a turn when it begins. */
export type TurnStart = Pick<TurnRow, 'id' | 'conversationRef' | 'sessionKey' | 'agentId' | 'principalId' | 'origin' | 'traceId' | 'startedAtMs'>;

/** The row of a turn that runs; see `openTurn`. */
export const openRow = {
  state: 'running',
  finishReason: null,
  failureKind: null,
  model: null,
  steps: 0,
  inputTokens: 0,
  outputTokens: 0,
  costNano: null,
  endedAtMs: null,
} as const;

/** All parts of a call's cost, in 1e-9 dollar. */
export const totalCost = (cost: NonNullable<CallRecord['cost']>) => cost.input + cost.output + cost.cacheRead + cost.cacheWrite;

/** Tokens of a turn over all its calls, failed ones included. */
export function tokensOf(calls: readonly CallRecord[]) {
  let input = 0;
  let output = 0;
  for (const call of calls) {
    input += call.usage.input;
    output += call.usage.output;
  }
  return { input, output, total: input + output };
}

function stateOf(result: TurnResult): TurnState {
  if (result.finishReason === 'aborted') return 'aborted';
  return result.failure === undefined ? 'completed' : 'failed';
}

/** Everything that the end of a turn writes; `question` is the message that it answered when its messages are kept. */
export function toCommit(row: TurnStart, result: TurnResult, endedAtMs: number, question: string | undefined): TurnCommit {
  const tokens = tokensOf(result.calls);
  const calls = result.calls.map(toCallRow);
  const costNano = calls.reduce((sum, call) => sum + (call.costNano ?? 0), 0);
  const turn: TurnRow = {
    ...row,
    state: stateOf(result),
    finishReason: result.finishReason,
    failureKind: result.failure?.kind ?? null,
    model: `${result.model.provider}/${result.model.modelId}`,
    steps: result.steps,
    inputTokens: tokens.input,
    outputTokens: tokens.output,
    costNano: calls.every((call) => call.costNano !== null) ? costNano : null,
    endedAtMs,
  };
  if (question === undefined) return { turn, calls, conversation: null };
  const toRow = (message: ModelMessage, createdAtMs: number) => ({
    role: message.role,
    content: message.content,
    toolJson: encodeToolColumn(message),
    createdAtMs,
  });
  const messages = [toRow({ role: 'user', content: question }, row.startedAtMs), ...result.messages.map((message) => toRow(message, endedAtMs))];
  const conversation = {
    ref: row.conversationRef,
    agentId: row.agentId,
    principalId: row.principalId,
    sessionKey: row.sessionKey,
    turnId: row.id,
    steps: result.steps,
    toolCalls: result.messages.filter((message) => message.role === 'tool').length,
    inputTokens: tokens.input,
    outputTokens: tokens.output,
    costNano,
    messages,
    atMs: endedAtMs,
  };
  return { turn, calls, conversation };
}

function toCallRow(call: CallRecord): ModelCallRow {
  return {
    provider: call.provider,
    model: call.modelId,
    operation: call.operation,
    outcome: call.outcome,
    inputTokens: call.usage.input,
    outputTokens: call.usage.output,
    cacheReadTokens: call.usage.cacheRead,
    cacheWriteTokens: call.usage.cacheWrite,
    estimated: call.usage.estimated,
    costNano: call.cost === null ? null : totalCost(call.cost),
    savedNano: call.savedNano,
    latencyMs: Math.round(call.latencyMs),
    responseId: call.responseId ?? null,
    atMs: call.startedAtMs,
  };
}
