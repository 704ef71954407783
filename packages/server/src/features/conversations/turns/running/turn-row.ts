import type { MessageAttachment } from '@gatehouse/contract';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation, OperationCall } from '../../../../kernel/db/operation.ts';
import type { ModelMessage } from '../../../../llm/model.ts';
import { totalCost } from '../../../../llm/price.ts';
import type { TakenResults } from '../../../../runtime/background.ts';
import { encodeAttachments, encodeReasoning, encodeToolColumn } from '../../../../runtime/stored-message.ts';
import type { CallRecord, TurnResult } from '../../../../runtime/turn.ts';
import type { MadeCall, ReserveStore } from '../../../access/budgets/api.ts';
import type { TurnOutcome, Alongside } from '../api.ts';
import type { TurnTotals } from '../durable/ledger.ts';
import { type ModelCallRow, type TurnCommit, type TurnRow, type TurnState, reserveForTurn, type TurnOpening } from '../store.ts';

/** The fields of a turn known at its start. */
export type TurnStart = Pick<
  TurnRow,
  'id' | 'conversationRef' | 'sessionKey' | 'agentId' | 'principalId' | 'origin' | 'traceId' | 'startedAtMs' | 'bootId'
>;

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

/** Usage of model calls, including failed ones. */
interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  /** 1e-9 US dollars of the calls whose price is known. */
  readonly knownNano: number;
  readonly isPriced: boolean;
}

/** The model calls of a turn as they are stored, with their sum. */
export interface TurnCalls extends Usage {
  readonly rows: readonly ModelCallRow[];
}

/** Sums up the model calls of a turn, once for its outcome and its rows. */
export function sumCalls(records: readonly CallRecord[]): TurnCalls {
  const rows = records.map(toCallRow);
  let inputTokens = 0;
  let outputTokens = 0;
  let cacheReadTokens = 0;
  let cacheWriteTokens = 0;
  let knownNano = 0;
  let isPriced = true;
  for (const row of rows) {
    inputTokens += row.inputTokens;
    outputTokens += row.outputTokens;
    cacheReadTokens += row.cacheReadTokens;
    cacheWriteTokens += row.cacheWriteTokens;
    if (row.costNano === null) isPriced = false;
    else knownNano += row.costNano;
  }
  return { rows, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, knownNano, isPriced };
}

const noUsage = { inputTokens: 0, outputTokens: 0, costNano: 0 } as const;

/** Returns the outcome reported to the caller; `before`: usage by earlier processes. */
export function toOutcome(row: TurnStart, result: TurnResult, calls: TurnCalls, before: Omit<TurnTotals, 'steps'> = noUsage): TurnOutcome {
  const { messages: _messages, calls: _calls, steps: _steps, waiting: _waiting, reported: _reported, model, ...answer } = result;
  const input = calls.inputTokens + before.inputTokens;
  const output = calls.outputTokens + before.outputTokens;
  return {
    ...answer,
    tokensUsed: { input, output, total: input + output },
    cachedInput: calls.cacheReadTokens,
    cacheWrittenInput: calls.cacheWriteTokens,
    costUsd: calls.isPriced && before.costNano !== null ? (calls.knownNano + before.costNano) / 1e9 : null,
    model: `${model.provider}/${model.modelId}`,
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
export function toCommit(
  row: TurnStart,
  result: TurnResult,
  { rows: calls, ...used }: TurnCalls,
  { endedAtMs, question }: { readonly endedAtMs: number; readonly question: Question | undefined },
): TurnCommit {
  const { inputTokens, outputTokens, knownNano, isPriced } = used;
  const turn: TurnRow = {
    ...row,
    state: stateOf(result),
    finishReason: result.finishReason,
    failureKind: result.failure?.kind ?? null,
    model: `${result.model.provider}/${result.model.modelId}`,
    steps: result.steps,
    inputTokens,
    outputTokens,
    costNano: isPriced ? knownNano : null,
    reservedNano: null,
    endedAtMs,
  };
  if (question === undefined) return { turn, calls, conversation: null };
  const toRow = (message: ModelMessage) => ({
    role: message.role,
    content: message.content,
    toolJson: encodeToolColumn(message),
    attachmentsJson: null,
    reasoningJson: encodeReasoning(message),
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
    inputTokens,
    outputTokens,
    costNano: knownNano,
    tainted: result.tainted,
    messages,
    atMs: endedAtMs,
  };
  return { turn, calls, conversation };
}

/** Returns the row of a model call. */
export function toCallRow(call: MadeCall): ModelCallRow {
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

export interface OpenRowDeps {
  readonly db: Db;
  readonly openTurn: Operation<TurnOpening, void>;
  readonly background: Pick<TakenResults, 'markCall'>;
}

/** Opens the row of a turn before its end, when a crash must leave a trace. */
export class OpenRow implements ReserveStore {
  readonly #deps: OpenRowDeps;
  readonly #turn: TurnStart;
  readonly #alongside: Alongside | undefined;
  #reserved: Pick<TurnOpening['turn'], 'reservedNano' | 'model'> | undefined;
  #isOpen = false;
  #begun: Promise<void> | undefined;
  /** Number of reported tasks already in the row. */
  #reported = 0;

  constructor(deps: OpenRowDeps, turn: TurnStart, alongside: Alongside | undefined) {
    this.#deps = deps;
    this.#turn = turn;
    this.#alongside = alongside;
  }

  /** Opens the row before a tool of class `once`, with the caller's operations the first time; `reported`: tasks whose results the turn received. */
  beforeOnce(reported: readonly string[]): Promise<void> {
    const ids = reported.slice(this.#reported);
    this.#reported = reported.length;
    const marked = ids.length === 0 ? [] : [this.#deps.background.markCall(ids, 'telling')];
    if (this.#begun === undefined) {
      const own = this.#alongside?.opened?.({ conversationRef: this.#turn.conversationRef }) ?? [];
      this.#begun = this.#open([...own, ...marked]);
    } else if (marked.length > 0) this.#begun = this.#begun.then(() => this.#open(marked));
    return this.#begun;
  }

  /** Reserves the cost of a model call under a budget in money. */
  reserve(reservedNano: number, model: string): Promise<void> {
    this.#reserved = { reservedNano, model };
    // Writes of one caller apply in the order of their calls.
    return this.#isOpen ? this.#deps.db.write(reserveForTurn, { id: this.#turn.id, reservedNano, model }) : this.#open([]);
  }

  #open(alongside: readonly OperationCall[]): Promise<void> {
    this.#isOpen = true;
    return this.#deps.db.write(this.#deps.openTurn, { turn: { ...this.#turn, ...openRow, ...this.#reserved }, alongside });
  }
}
