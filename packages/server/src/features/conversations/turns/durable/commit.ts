import type { MessageAttachment } from '@gatehouse/contract';
import type { ModelMessage } from '../../../../llm/model.ts';
import { totalCost } from '../../../../llm/price.ts';
import { encodeAttachments, encodeToolColumn } from '../../../../runtime/stored-message.ts';
import type { CallRecord, TurnResult } from '../../../../runtime/turn.ts';
import type { TurnOutcome } from '../api.ts';
import type { TurnTotals } from './ledger.ts';
import type { ModelCallRow, TurnCommit, TurnRow, TurnState } from '../store.ts';

/** The fields of a turn known at its start. */
export type TurnStart = Pick<TurnRow, 'id' | 'conversationRef' | 'sessionKey' | 'agentId' | 'principalId' | 'origin' | 'traceId' | 'startedAtMs'>;

/** The row fields of a running turn; see `openTurn`. */
export const openRow = {
  state: 'running',
  finishReason: null,
  failureKind: null,
  model: null,
  steps: 0,
  inputTokens: 0,
  outputTokens: 0,
  costNano: null,
  reservedNano: null,
  endedAtMs: null,
} as const;

/** Returns the tokens of all calls of a turn, including failed ones. */
function tokensOf(calls: readonly CallRecord[]) {
  let input = 0;
  let output = 0;
  for (const call of calls) {
    input += call.usage.input;
    output += call.usage.output;
  }
  return { input, output, total: input + output };
}

function costOf(calls: readonly CallRecord[]): number | null {
  let nano = 0;
  for (const { cost } of calls) {
    if (cost === null) return null;
    nano += totalCost(cost);
  }
  return nano / 1e9;
}

function withTokens({ input, output }: ReturnType<typeof tokensOf>, before: TurnTotals) {
  const all = { input: input + before.inputTokens, output: output + before.outputTokens };
  return { ...all, total: all.input + all.output };
}

const withCost = (usd: number | null, { costNano }: TurnTotals) => (usd === null || costNano === null ? null : usd + costNano / 1e9);

/** Returns the outcome reported to the caller; `before`: usage by earlier processes. */
export function toOutcome(row: TurnStart, result: TurnResult, before?: TurnTotals): TurnOutcome {
  return {
    finishReason: result.finishReason,
    text: result.text,
    tokensUsed: before === undefined ? tokensOf(result.calls) : withTokens(tokensOf(result.calls), before),
    cachedInput: result.calls.reduce((sum, call) => sum + call.usage.cacheRead, 0),
    cacheWrittenInput: result.calls.reduce((sum, call) => sum + call.usage.cacheWrite, 0),
    costUsd: before === undefined ? costOf(result.calls) : withCost(costOf(result.calls), before),
    model: `${result.model.provider}/${result.model.modelId}`,
    tainted: result.tainted,
    ...(result.clientCalls !== undefined && { clientCalls: result.clientCalls }),
    ...(result.leftOut !== undefined && { leftOut: result.leftOut }),
    ...(result.thinking !== undefined && { thinking: result.thinking }),
    ...(result.ending !== undefined && { ending: result.ending }),
    ...(result.effectsRefused !== undefined && { effectsRefused: result.effectsRefused }),
    ...(result.failure !== undefined && { failure: result.failure }),
    conversationRef: row.conversationRef,
    sessionKey: row.sessionKey,
    agentId: row.agentId,
    turnId: row.id,
    traceId: row.traceId,
  };
}

function stateOf(result: TurnResult): TurnState {
  if (result.finishReason === 'aborted') return 'aborted';
  return result.failure === undefined ? 'completed' : 'failed';
}

/** The message that a turn answers, when its messages are stored. */
export interface Question {
  readonly text: string;
  readonly attachments?: readonly MessageAttachment[] | undefined;
}

/** Returns everything to store at the end of a turn, except the caller's own rows. */
export function toCommit(row: TurnStart, result: TurnResult, endedAtMs: number, question: Question | undefined): TurnCommit {
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
    reservedNano: null,
    endedAtMs,
  };
  if (question === undefined) return { turn, calls, conversation: null };
  const toRow = (message: ModelMessage) => ({
    role: message.role,
    content: message.content,
    toolJson: encodeToolColumn(message),
    attachmentsJson: null,
    createdAtMs: endedAtMs,
  });
  const asked = {
    role: 'user' as const,
    content: question.text,
    toolJson: null,
    attachmentsJson: encodeAttachments(question.attachments),
    createdAtMs: row.startedAtMs,
  };
  const messages = [asked, ...result.messages.map(toRow)];
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
    tainted: result.tainted,
    messages,
    atMs: endedAtMs,
  };
  return { turn, calls, conversation };
}

/** Returns the row of a model call. */
export function toCallRow(call: CallRecord): ModelCallRow {
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
