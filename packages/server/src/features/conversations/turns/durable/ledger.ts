import { hash } from 'node:crypto';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import type { ModelMessage, ToolCall } from '../../../../llm/model.ts';
import { totalCost } from '../../../../llm/price.ts';
import type { CallRecord, LedgerStep, TurnLedger, TurnPast } from '../../../../runtime/turn.ts';
import type { ReserveStore } from '../../../access/budgets/api.ts';
import type { ConversationTarget } from '../../sessions/api.ts';
import type { WorkClaim, WorkWait } from '../../../unattended/durable/api.ts';
import { toCallRow } from '../running/turn-row.ts';
import type { InterruptedTurn } from './ledger-store.ts';
import type { ModelCallRow } from '../store.ts';

/** A step of a durable turn: only the answer, or with all results when finished. */
export interface StepRow {
  readonly step: number;
  readonly finished: boolean;
  readonly messages: readonly ModelMessage[];
}

/** Booked usage of a turn over all processes that ran it. */
export interface TurnTotals {
  readonly steps: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** 1e-9 US dollars; null when a price is unknown. */
  readonly costNano: number | null;
}

/** Identifies whose calls are booked, and by which claim. */
export interface DurableOf {
  readonly claim: WorkClaim;
  readonly turnId: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly conversationRef: string;
  /** What the calls are added to when the claim is lost: the end of the turn, which adds all of them, is not that of this process. */
  readonly part?: { readonly rootRunId: string; readonly runId?: string };
}

/** State of a running durable turn, stored in one transaction. */
export interface Checkpoint extends DurableOf {
  /** Totals including `calls`. */
  readonly totals: TurnTotals;
  /** Calls not booked before. */
  readonly calls: readonly ModelCallRow[];
  readonly step?: StepRow;
  readonly intent?: { readonly opKey: string; readonly step: number; readonly callId: string; readonly toolName: string };
  readonly closed?: { readonly opKey: string; readonly result: ModelMessage };
  /** Ids of steering messages in the step. */
  readonly steers?: readonly string[];
  /** Number of calls of the turn so far not run because of a missing approval. */
  readonly refused?: number;
  /** Set when the daemon stops, so that the next resume is not counted. */
  readonly parked?: true;
  /** The wait of the work; only with `parked`. */
  readonly wait?: {
    readonly for: WorkWait;
    readonly atMs: number;
    /** Stored if it is not yet, so that its owner finds it meanwhile, with what the turn answers. */
    readonly conversation?: { readonly target: ConversationTarget; readonly question: string };
  };
  /** Set when the turn has read untrusted text that is not in its steps. */
  readonly tainted?: true;
}

export interface ReserveInput {
  readonly claim: WorkClaim;
  readonly id: string;
  readonly reservedNano: number;
  readonly model: string;
}

export interface LedgerDeps {
  readonly db: Db;
  /** Resolve with false, and store nothing, when the claim was lost. */
  readonly checkpointTurn: Operation<Checkpoint, boolean>;
  readonly reserveForDurable: Operation<ReserveInput, boolean>;
}

export const noTotals: TurnTotals = { steps: 0, inputTokens: 0, outputTokens: 0, costNano: 0 };

/** Returns the key of a run-once operation, the same at each resume of its step. */
const opKeyOf = (workId: string, turnId: string, step: number, index: number) =>
  hash('sha256', JSON.stringify([workId, turnId, step, index]), 'base64url');

/** Records the progress of a durable turn, so that another process can resume it without repeating anything (reliability §4.1). */
export class WorkLedger implements TurnLedger, ReserveStore {
  readonly past?: TurnPast;
  readonly #deps: LedgerDeps;
  readonly startedAtMs: number;
  readonly #of: DurableOf;
  readonly #onLost: () => void;
  readonly #before: TurnTotals;
  #totals: TurnTotals;
  /** Number of this run's records that are booked. */
  #booked = 0;
  /** The part of this run's budget that is already booked. */
  #bookedNano: number;
  #hasActed: boolean;
  #isTainted = false;
  /** Operation keys of started calls, by call id. */
  readonly #open = new Map<string, string>();
  /** Calls whose results are stored. */
  readonly #closed = new Set<string>();

  constructor(deps: LedgerDeps, of: DurableOf, startedAtMs: number, left: InterruptedTurn | undefined, onLost: () => void) {
    this.#deps = deps;
    this.#of = of;
    this.startedAtMs = startedAtMs;
    this.#onLost = onLost;
    this.#before = left?.totals ?? noTotals;
    this.#totals = this.#before;
    this.#bookedNano = this.#before.costNano ?? 0;
    this.#hasActed = left?.hasActed ?? false;
    if (left === undefined) return;
    this.past = pastOf(left);
    for (const { callId } of left.intents) this.#closed.add(callId);
  }

  get workId(): string {
    return this.#of.claim.id;
  }

  /** Usage of the turn before this run. */
  get before(): TurnTotals {
    return this.#before;
  }

  /** Whether a tool of class `once` has started. */
  get hasActed(): boolean {
    return this.#hasActed;
  }

  /** Totals including everything booked so far. */
  get totals(): TurnTotals {
    return this.#totals;
  }

  /** Marks the turn as starting with untrusted text; stored with the next step. */
  taint(): void {
    this.#isTainted = true;
  }

  /** Returns this run's records that are not booked yet. */
  unbooked(records: readonly CallRecord[]): readonly CallRecord[] {
    return records.slice(this.#booked);
  }

  async begin(step: LedgerStep, call: ToolCall): Promise<void> {
    const { claim, turnId } = this.#of;
    const opKey = opKeyOf(claim.id, turnId, step.number, step.calls.indexOf(call));
    this.#hasActed = true;
    const answer: ModelMessage = { role: 'assistant', content: step.text, toolCalls: step.calls };
    const isKept = await this.#keep(step, {
      step: { step: step.number, finished: false, messages: [answer] },
      intent: { opKey, step: step.number, callId: call.id, toolName: call.name },
    });
    if (!isKept) throw new AppError('conflict', 'Another process has taken over the turn');
    this.#open.set(call.id, opKey);
  }

  async end(call: ToolCall, result: ModelMessage): Promise<void> {
    const opKey = this.#open.get(call.id);
    if (opKey === undefined) return;
    this.#open.delete(call.id);
    this.#closed.add(call.id);
    await this.#write({ ...this.#of, totals: this.#totals, calls: [], closed: { opKey, result } });
  }

  async pause(step: LedgerStep, results: readonly ModelMessage[]): Promise<void> {
    const { claim, turnId } = this.#of;
    const { number, calls, text, refused } = step;
    await this.#keep(step, { step: { step: number, finished: false, messages: [{ role: 'assistant', content: text, toolCalls: calls }] }, refused });
    // Store repeatable results too, because their calls would otherwise run, and ask for approval, again.
    for (const result of results) {
      const index = calls.findIndex(({ id }) => result.role === 'tool' && id === result.toolCallId);
      const call = calls[index];
      if (call === undefined || this.#closed.has(call.id)) continue;
      const opKey = opKeyOf(claim.id, turnId, number, index);
      const intent = { opKey, step: number, callId: call.id, toolName: call.name };
      await this.#write({ ...this.#of, totals: this.#totals, calls: [], intent, closed: { opKey, result } });
      this.#closed.add(call.id);
    }
  }

  async finish(step: LedgerStep, messages: readonly ModelMessage[]): Promise<void> {
    const { number, steers, refused } = step;
    await this.#keep(step, { step: { step: number, finished: true, messages }, refused, ...(steers !== undefined && { steers }) });
  }

  /** Books this run's usage and leaves the rest to the next claim; returns false when the claim was lost. */
  park(records: readonly CallRecord[], wait?: Checkpoint['wait']): Promise<boolean> {
    return this.#keep({ number: this.#totals.steps, records }, { parked: true, ...(wait !== undefined && { wait }) });
  }

  async reserve(reservedNano: number, model: string): Promise<void> {
    const { claim, turnId: id } = this.#of;
    // The budget counts from the start of the turn; booked amounts are no longer reserved.
    const isKept = await this.#deps.db.write(this.#deps.reserveForDurable, { claim, id, reservedNano: reservedNano - this.#bookedNano, model });
    if (!isKept) {
      this.#onLost();
      throw new AppError('conflict', 'Another process has taken over the turn');
    }
  }

  async #keep(
    { number: steps, records }: Pick<LedgerStep, 'number' | 'records'>,
    what: Pick<Checkpoint, 'step' | 'intent' | 'parked' | 'wait' | 'steers' | 'refused'>,
  ): Promise<boolean> {
    const fresh = this.unbooked(records);
    const calls = fresh.map(toCallRow);
    const totals = addCalls({ ...this.#totals, steps }, calls);
    const isKept = await this.#write({ ...this.#of, totals, calls, ...what });
    // Calls are booked even if the claim was lost, because they were made.
    this.#booked += fresh.length;
    this.#bookedNano += fresh.reduce((sum, { cost }) => sum + (cost === null ? 0 : totalCost(cost)), 0);
    this.#totals = totals;
    return isKept;
  }

  async #write(checkpoint: Checkpoint): Promise<boolean> {
    const isKept = await this.#deps.db.write(this.#deps.checkpointTurn, this.#isTainted ? { ...checkpoint, tainted: true } : checkpoint);
    if (!isKept) this.#onLost();
    return isKept;
  }
}

export function addCalls(totals: TurnTotals, calls: readonly ModelCallRow[]): TurnTotals {
  let { inputTokens, outputTokens, costNano } = totals;
  for (const call of calls) {
    inputTokens += call.inputTokens;
    outputTokens += call.outputTokens;
    costNano = costNano === null || call.costNano === null ? null : costNano + call.costNano;
  }
  return { steps: totals.steps, inputTokens, outputTokens, costNano };
}

function pastOf({ steps, intents, totals, refused }: InterruptedTurn): TurnPast {
  const finished = steps.filter((step) => step.finished);
  const [answer] = steps.find((step) => !step.finished)?.messages ?? [];
  return {
    messages: finished.flatMap((step) => step.messages),
    steps: totals.steps,
    usedTokens: totals.inputTokens + totals.outputTokens,
    refused,
    ...(answer?.role === 'assistant' && {
      begun: { text: answer.content, calls: answer.toolCalls ?? [], results: intents.flatMap(({ result }) => result ?? []) },
    }),
  };
}
