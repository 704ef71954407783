import type { TurnAutonomy } from '../../../delegation/autonomy/api.ts';
import type { TurnOrigin } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../../kernel/audit.ts';
import type { CallContext, CallingTurn } from '../../../../kernel/call-context.ts';
import type { AuditRow } from '../../../../kernel/db/audit.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation, OperationCall } from '../../../../kernel/db/operation.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { ModelInfo } from '../../../../llm/model.ts';
import { holdsTaint } from '../../../../runtime/fence.ts';
import type { ApprovalWait, TurnResult } from '../../../../runtime/turn.ts';
import type { ConversationTarget } from '../../sessions/api.ts';
import type { WorkClaim, WorkEnd, WorkWait } from '../../../unattended/durable/api.ts';
import type { Admitted } from '../lanes/admission.ts';
import type { DurableOutcome, DurableTurn, TurnOutcome, TurnSettlement } from '../api.ts';
import { openRow, type Question, sumCalls, toCommit, type TurnStart } from '../running/turn-row.ts';
import { addCalls, type Checkpoint, type DurableOf, type LedgerDeps, WorkLedger } from './ledger.ts';
import type { InterruptedTurn } from './ledger-store.ts';
import { endOf, type InterruptedEnd } from './interrupted-turn.ts';
import type { TurnCommit, TurnRow } from '../store.ts';

export interface DurableOpening {
  readonly claim: WorkClaim;
  /** Row of a turn that has not started before. */
  readonly turn: TurnRow;
}

export interface DurableCommit extends TurnCommit, DurableOf {
  readonly settlement:
    | { readonly state: WorkEnd; readonly result?: unknown; readonly errorKind?: string }
    | { readonly state: 'accepted'; readonly errorKind: string; readonly notBeforeMs: number };
  readonly audit?: AuditRow;
}

export interface DurableCommitted extends Pick<DurableOutcome, 'settled' | 'outputs'> {
  readonly created: boolean;
}

export interface DurableDeps extends LedgerDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly bus: EventBus;
  /** Operations of `commit-durable-turn.ts` that commit together with other features. */
  readonly openDurableTurn: Operation<DurableOpening, { readonly left: InterruptedTurn | undefined } | undefined>;
  readonly commitDurableTurn: Operation<DurableCommit, DurableCommitted>;
  /** Called when a turn was parked to wait for an approval, before its lane is free. */
  readonly parked: (turn: ParkedTurn) => Promise<void>;
  /** Called when a turn runs again that an earlier claim of its work had parked. */
  readonly continued: (workId: string) => void;
  /** Called after the end of a turn, when nothing of it waits any more. */
  /** Returns what adds a turn to its root run, in the transaction that books it. */
  readonly booking: TurnAutonomy['booking'];
  readonly turnEnded: (turn: { readonly conversationRef: string; readonly turnId: string }) => void;
}

/** A turn waiting for an approval, which keeps its lane. */
export interface ParkedTurn {
  readonly workId: string;
  readonly fence: number;
  readonly target: ConversationTarget;
  readonly origin: TurnOrigin;
  readonly startedAtMs: number;
  /** The approval request it waits for. */
  readonly approvalId: string;
  readonly rootRunId: string | null;
  /** Set for the turn of a sub-agent. */
  readonly runId: string | null;
}

const lostClaim = () => new AppError('conflict', 'Another process has taken over the work');

/** A durable turn as this process runs it, with its earlier progress and its end. */
export class OpenDurableTurn {
  readonly ledger: WorkLedger;
  readonly start: TurnStart;
  readonly turn: DurableTurn;
  readonly isResumed: boolean;
  /** Whether an earlier run of the turn has read untrusted text. */
  readonly isTainted: boolean;
  /** Set when an earlier run left the turn in a state that cannot be resumed; the turn ends with it. */
  readonly ending: InterruptedEnd | undefined;
  readonly #deps: DurableDeps;
  readonly #of: DurableOf;
  readonly #call: CallContext;
  #end: Pick<DurableOutcome, 'settled' | 'state' | 'outputs'> = { settled: false, state: 'aborted', outputs: [] };

  /** Stores the row of a new turn, or loads the state left by an earlier run; throws `conflict` when the claim was lost. */
  static async open(deps: DurableDeps, turn: DurableTurn, fresh: TurnStart, admitted: Admitted): Promise<OpenDurableTurn> {
    const claim = { id: turn.workId, owner: turn.owner, fence: turn.fence };
    const opened = await deps.db.write(deps.openDurableTurn, { claim, turn: { ...fresh, ...openRow, costNano: 0 } });
    if (opened === undefined) throw lostClaim();
    const { left } = opened;
    const start = left === undefined ? fresh : { ...fresh, id: left.turnId, traceId: left.traceId, startedAtMs: left.startedAtMs };
    return new OpenDurableTurn(deps, turn, start, left, admitted, claim);
  }

  private constructor(
    deps: DurableDeps,
    turn: DurableTurn,
    start: TurnStart,
    left: InterruptedTurn | undefined,
    admitted: Admitted,
    claim: WorkClaim,
  ) {
    const { agentId, principalId, conversationRef, startedAtMs } = start;
    this.#deps = deps;
    this.#call = admitted.call;
    const { rootRunId = `root-turn-${start.id}`, run } = turn;
    const part = { rootRunId, ...(run !== undefined && { runId: run.runId }) };
    this.#of = { claim, turnId: start.id, agentId, principalId, conversationRef, part };
    this.turn = turn;
    this.start = start;
    this.isResumed = left !== undefined;
    this.isTainted = left?.isTainted === true;
    this.ending = left === undefined ? undefined : endOf(left);
    this.ledger = new WorkLedger(deps, this.#of, startedAtMs, left, () => admitted.controller.abort(lostClaim()));
  }

  /** Usage of the turn before this run, for its budget. */
  get used() {
    const { inputTokens, outputTokens, costNano } = this.ledger.before;
    return { tokens: inputTokens + outputTokens, nano: costNano ?? 0 };
  }

  /** Call when the turn is known to run: until then it counts as parked, so that every stop finds it. */
  running(): void {
    if (this.isResumed) this.#deps.continued(this.turn.workId);
  }

  /** Returns the result of a turn that cannot be resumed. */
  interruptedResult([model]: readonly ModelInfo[]): TurnResult | undefined {
    if (this.ending === undefined || model === undefined) return undefined;
    const { kind, message, messages } = this.ending;
    const { steps } = this.ledger.before;
    const tainted = this.isTainted || messages.some(({ content }) => holdsTaint(content));
    const failure = { kind, message, transient: false };
    return { finishReason: 'error', text: message, messages, calls: [], steps, model, tainted, failure };
  }

  /**
   * Commits the turn with the end of its work. Returns undefined when the claim was lost; then only the model calls are
   * stored. Throws `unavailable` when the daemon stops, which leaves the turn to the next start.
   */
  async commit(
    result: TurnResult,
    outcome: TurnOutcome,
    question: Question,
    { stopped, calling }: { readonly stopped: AbortSignal; readonly calling: CallingTurn },
  ): Promise<{ readonly created: boolean; readonly waits?: true } | undefined> {
    const { db, clock, bus } = this.#deps;
    if (result.finishReason === 'aborted' && isStop(stopped.reason)) {
      await this.ledger.park(result.calls);
      throw stopped.reason;
    }
    const atMs = clock.now();
    if (result.waiting !== undefined) return this.#park(result.waiting, result.calls, question, atMs);
    const asked = await this.turn.settle(outcome, result, calling);
    if ('wait' in asked && this.ending === undefined) {
      const settled = await this.ledger.park(result.calls, this.#waiting(asked.wait, question, atMs));
      this.#end = { settled, state: 'accepted', outputs: [] };
      return settled ? { created: false, waits: true } : undefined;
    }
    const { settlement, isRetry, alongside } = this.#settlement(asked);
    const { kept } = this.turn;
    const isKept = !isRetry && (typeof kept === 'boolean' ? kept : this.ending !== undefined || kept(outcome));
    const unbooked = sumCalls(this.ledger.unbooked(result.calls));
    const { conversation, turn, calls } = toCommit(this.start, result, unbooked, { endedAtMs: atMs, question: isKept ? question : undefined });
    const { steps: _, ...totals } = addCalls(this.ledger.totals, calls);
    const { inputTokens, outputTokens, costNano } = totals;
    const sums = { tokens: inputTokens + outputTokens, nano: costNano ?? 0, unpriced: Number(costNano === null) };
    const booked = this.#deps.booking(calling, sums);
    const isUnknown = this.ending?.kind === 'unknown';
    const audit = this.ending === undefined ? undefined : auditRow(this.#call, atMs, audited(this.ending, this.start.id, this.#of.claim.id));
    const { created, ...end } = await db.write(this.#deps.commitDurableTurn, {
      ...this.#of,
      turn: { ...turn, ...totals, ...(isUnknown && { state: 'unknown' }) },
      calls,
      conversation,
      settlement,
      alongside: [...(alongside ?? []), ...booked],
      ...(audit !== undefined && { audit }),
    });
    this.#end = { ...end, state: settlement.state };
    const { conversationRef, turnId } = this.#of;
    this.#deps.turnEnded({ conversationRef, turnId });
    if (!end.settled) return undefined;
    if (audit !== undefined) announceAudit(bus, audit);
    return { created };
  }

  /** Returns the wait to store. */
  #waiting(wait: WorkWait, { text: question }: Question, atMs: number): NonNullable<Checkpoint['wait']> {
    const { kept, target, rootRunId = `root-turn-${this.start.id}`, run } = this.turn;
    const root = { rootRunId, ...(run !== undefined && { runId: run.runId }) };
    return { for: { ...wait, ...root }, atMs, ...(kept === true && { conversation: { target, question } }) };
  }

  /** Keeps the turn open until a person has decided about its call. */
  async #park({ approvalId, untilMs }: ApprovalWait, calls: TurnResult['calls'], question: Question, atMs: number) {
    const { claim } = this.#of;
    const lookAtMs = Math.max(untilMs, atMs + minCheckMs);
    const settled = await this.ledger.park(calls, this.#waiting({ kind: 'approval', untilMs, lookAtMs, subject: approvalId }, question, atMs));
    this.#end = { settled, state: 'accepted', outputs: [] };
    if (!settled) return undefined;
    const { target, origin, rootRunId = `root-turn-${this.start.id}`, run } = this.turn;
    const { startedAtMs } = this.start;
    const { id: workId, fence } = claim;
    await this.#deps.parked({ approvalId, workId, fence, target, origin, startedAtMs, rootRunId, runId: run?.runId ?? null });
    return { created: false, waits: true } as const;
  }

  /** Returns the outcome. Call after `commit`. */
  ended(outcome: TurnOutcome): DurableOutcome {
    return { ...outcome, ...this.#end };
  }

  #settlement({ alongside, ...asked }: TurnSettlement): {
    settlement: DurableCommit['settlement'];
    isRetry: boolean;
    alongside: readonly OperationCall[] | undefined;
  } {
    if (this.ending !== undefined) {
      const { kind } = this.ending;
      const given = 'state' in asked ? asked.result : undefined;
      const settlement = { state: kind === 'unknown' ? ('unknown' as const) : ('failed' as const), errorKind: kind, result: given };
      return { settlement, isRetry: false, alongside };
    }
    if (!('retryAfterMs' in asked)) return { settlement: 'wait' in asked ? { state: 'failed' } : asked, isRetry: false, alongside };
    const { retryAfterMs, errorKind } = asked;
    // A new turn would repeat the effects of this one.
    if (this.ledger.hasActed) return { settlement: { state: 'failed', errorKind }, isRetry: false, alongside };
    return {
      settlement: { state: 'accepted', errorKind, notBeforeMs: this.#deps.clock.now() + Math.max(0, retryAfterMs) },
      isRetry: true,
      alongside,
    };
  }
}

/** Minimum delay of the check at the end of the wait, in case the clock is ahead and the end seems past. */
const minCheckMs = 60_000;

const isStop = (reason: unknown): boolean => reason instanceof AppError && reason.code === 'unavailable';

const audited = ({ kind, toolName }: InterruptedEnd, turnId: string, workId: string) => ({
  actionType: kind === 'unknown' ? 'turn.unknown' : 'turn.given_up',
  classification: 'mutate' as const,
  outcome: 'failure' as const,
  target: turnId,
  metadata: { workId, ...(toolName !== undefined && { toolName }) },
});
