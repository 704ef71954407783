import type { TurnOrigin } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../../kernel/audit.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { AuditRow } from '../../../../kernel/db/audit.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { ModelInfo } from '../../../../llm/model.ts';
import { holdsTaint } from '../../../../runtime/fence.ts';
import type { ApprovalWait, TurnResult } from '../../../../runtime/turn.ts';
import type { ConversationTarget } from '../../sessions/api.ts';
import type { WorkClaim, WorkEnd } from '../../../unattended/durable/api.ts';
import type { Admitted } from '../admission.ts';
import type { AlongsideRows, DurableOutcome, DurableTurn, TurnOutcome, TurnSettlement } from '../api.ts';
import { openRow, type Question, toCommit, toOutcome, type TurnStart } from './commit.ts';
import { addCalls, type DurableOf, type LedgerDeps, WorkLedger } from './ledger.ts';
import type { LeftTurn } from './ledger-store.ts';
import { endOf, type LeftEnd } from './interrupted-turn.ts';
import type { TurnCommit, TurnRow } from '../store.ts';

export interface DurableOpening {
  readonly claim: WorkClaim;
  /** For a turn that was not begun before. */
  readonly turn: TurnRow;
}

export interface DurableCommit extends TurnCommit, DurableOf {
  readonly settlement:
    | { readonly state: WorkEnd; readonly result?: unknown; readonly errorKind?: string }
    | { readonly state: 'accepted'; readonly errorKind: string; readonly notBeforeMs: number };
  readonly audit?: AuditRow;
}

export interface DurableCommitted extends Pick<DurableOutcome, 'settled' | 'endedRun'> {
  readonly created: boolean;
}

export interface DurableDeps extends LedgerDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly bus: EventBus;
  /** `commit-durable-turn.ts`: what must commit together with the parts of others. */
  readonly openDurableTurn: Operation<DurableOpening, { readonly left: LeftTurn | undefined } | undefined>;
  readonly commitDurableTurn: Operation<DurableCommit, DurableCommitted>;
  /** After a turn was left that waits for an approval, and before its lane is free. */
  readonly left: (turn: LeftInLane) => Promise<void>;
  /** After the end of a turn: nothing of it waits any more. */
  readonly turnEnded: (turn: { readonly conversationRef: string; readonly turnId: string }) => void;
}

/** A left turn, for which its lane is kept. */
export interface LeftInLane {
  readonly workId: string;
  readonly fence: number;
  readonly target: ConversationTarget;
  readonly origin: TurnOrigin;
  readonly startedAtMs: number;
  /** The request that it waits for. */
  readonly approvalId: string;
  readonly rootRunId: string | null;
  /** Of the turn of a sub-agent. */
  readonly runId: string | null;
}

const lostClaim = () => new AppError('conflict', 'The work is done by another process by now');

/** One run of a durable turn: what it has done before, what it does, and its end. */
export class DurableRun {
  readonly ledger: WorkLedger;
  readonly start: TurnStart;
  readonly turn: DurableTurn;
  readonly isResumed: boolean;
  /** An earlier run of it had read text from outside. */
  readonly isTainted: boolean;
  /** How the turn ends without a further step: an earlier run left something that cannot be gone on with. */
  readonly leftEnd: LeftEnd | undefined;
  readonly #deps: DurableDeps;
  readonly #of: DurableOf;
  readonly #call: CallContext;
  #end: Pick<DurableOutcome, 'settled' | 'state' | 'endedRun'> = { settled: false, state: 'aborted' };

  /** Writes the row of a new turn, or finds what an earlier run left of it; fails with `conflict` when the claim is another's. */
  static async open(deps: DurableDeps, turn: DurableTurn, fresh: TurnStart, admitted: Admitted): Promise<DurableRun> {
    const claim = { id: turn.workId, owner: turn.owner, fence: turn.fence };
    const opened = await deps.db.write(deps.openDurableTurn, { claim, turn: { ...fresh, ...openRow, costNano: 0 } });
    if (opened === undefined) throw lostClaim();
    const { left } = opened;
    const start = left === undefined ? fresh : { ...fresh, id: left.turnId, startedAtMs: left.startedAtMs };
    return new DurableRun(deps, turn, start, left, admitted, claim);
  }

  private constructor(deps: DurableDeps, turn: DurableTurn, start: TurnStart, left: LeftTurn | undefined, admitted: Admitted, claim: WorkClaim) {
    const { agentId, principalId, conversationRef, startedAtMs } = start;
    this.#deps = deps;
    this.#call = admitted.call;
    this.#of = { claim, turnId: start.id, agentId, principalId, conversationRef };
    this.turn = turn;
    this.start = start;
    this.isResumed = left !== undefined;
    this.isTainted = left?.isTainted === true;
    this.leftEnd = left === undefined ? undefined : endOf(left);
    this.ledger = new WorkLedger(deps, this.#of, startedAtMs, left, () => admitted.controller.abort(lostClaim()));
  }

  /** What the turn used before this run of it, for its budget. */
  get used() {
    const { inputTokens, outputTokens, costNano } = this.ledger.before;
    return { tokens: inputTokens + outputTokens, nano: costNano ?? 0 };
  }

  /** Of a turn that ends by what an earlier run of it left. */
  resultOfLeft([model]: readonly ModelInfo[]): TurnResult | undefined {
    if (this.leftEnd === undefined || model === undefined) return undefined;
    const { kind, message, messages } = this.leftEnd;
    const { steps } = this.ledger.before;
    const tainted = this.isTainted || messages.some(({ content }) => holdsTaint(content));
    const failure = { kind, message, transient: false };
    return { finishReason: 'error', text: message, messages, calls: [], steps, model, tainted, failure };
  }

  outcomeOf(result: TurnResult): TurnOutcome {
    return toOutcome(this.start, result, this.ledger.before);
  }

  /**
   * Commits the turn with the end of its work. Undefined when the claim is another's: then nothing is kept but the calls that
   * were made. Fails with `unavailable` when the daemon stops, which leaves the turn to the next start.
   */
  async commit(
    result: TurnResult,
    outcome: TurnOutcome,
    question: Question,
    stopped: AbortSignal,
  ): Promise<{ readonly created: boolean; readonly waits?: true } | undefined> {
    const { db, clock, bus } = this.#deps;
    if (result.finishReason === 'aborted' && isStop(stopped.reason)) {
      await this.ledger.park(result.calls);
      throw stopped.reason;
    }
    const atMs = clock.now();
    if (result.waiting !== undefined) return this.#leave(result.waiting, result.calls, atMs);
    const asked = await this.turn.settle(outcome, result);
    if ('wait' in asked && this.leftEnd === undefined) {
      const settled = await this.ledger.park(result.calls, { for: asked.wait, atMs });
      this.#end = { settled, state: 'accepted' };
      return settled ? { created: false, waits: true } : undefined;
    }
    const { settlement, isRetry, alongside } = this.#settlement(asked);
    const { kept } = this.turn;
    const isKept = !isRetry && (typeof kept === 'boolean' ? kept : this.leftEnd !== undefined || kept(outcome));
    const unbooked = this.ledger.unbooked(result.calls);
    const { conversation, turn, calls } = toCommit(this.start, { ...result, calls: unbooked }, atMs, isKept ? question : undefined);
    const { steps: _, ...totals } = addCalls(this.ledger.totals, calls);
    const isUnknown = this.leftEnd?.kind === 'unknown';
    const audit = this.leftEnd === undefined ? undefined : auditRow(this.#call, atMs, audited(this.leftEnd, this.start.id, this.#of.claim.id));
    const { created, ...end } = await db.write(this.#deps.commitDurableTurn, {
      ...this.#of,
      turn: { ...turn, ...totals, ...(isUnknown && { state: 'unknown' }) },
      calls,
      conversation,
      settlement,
      alongside,
      ...(audit !== undefined && { audit }),
    });
    this.#end = { ...end, state: settlement.state };
    const { conversationRef, turnId } = this.#of;
    this.#deps.turnEnded({ conversationRef, turnId });
    if (!end.settled) return undefined;
    if (audit !== undefined) announceAudit(bus, audit);
    return { created };
  }

  /** The turn stays open until a person has decided about its call. */
  async #leave({ approvalId, untilMs }: ApprovalWait, calls: TurnResult['calls'], atMs: number) {
    const { claim } = this.#of;
    const settled = await this.ledger.park(calls, {
      for: { kind: 'approval', untilMs, lookAtMs: Math.max(untilMs, atMs + soonestLookMs), subject: approvalId },
      atMs,
    });
    this.#end = { settled, state: 'accepted' };
    if (!settled) return undefined;
    const { target, origin, rootRunId = `root-turn-${this.start.id}`, run } = this.turn;
    const { startedAtMs } = this.start;
    const { id: workId, fence } = claim;
    await this.#deps.left({ approvalId, workId, fence, target, origin, startedAtMs, rootRunId, runId: run?.runId ?? null });
    return { created: false, waits: true } as const;
  }

  /** After `commit`. */
  ended(outcome: TurnOutcome): DurableOutcome {
    return { ...outcome, ...this.#end };
  }

  #settlement({ alongside, ...asked }: TurnSettlement): {
    settlement: DurableCommit['settlement'];
    isRetry: boolean;
    alongside: AlongsideRows | undefined;
  } {
    if (this.leftEnd !== undefined) {
      const { kind } = this.leftEnd;
      const told = 'state' in asked ? asked.result : undefined;
      const settlement = { state: kind === 'unknown' ? ('unknown' as const) : ('failed' as const), errorKind: kind, result: told };
      return { settlement, isRetry: false, alongside };
    }
    if (!('retryAfterMs' in asked)) return { settlement: 'wait' in asked ? { state: 'failed' } : asked, isRetry: false, alongside };
    const { retryAfterMs, errorKind } = asked;
    // A new turn would do again what this one did.
    if (this.ledger.hasActed) return { settlement: { state: 'failed', errorKind }, isRetry: false, alongside };
    return {
      settlement: { state: 'accepted', errorKind, notBeforeMs: this.#deps.clock.now() + Math.max(0, retryAfterMs) },
      isRetry: true,
      alongside,
    };
  }
}

/** A decision, and the end of the wait, resume the work; by a clock that is ahead, its end may seem long past. */
const soonestLookMs = 60_000;

const isStop = (reason: unknown): boolean => reason instanceof AppError && reason.code === 'unavailable';

const audited = ({ kind, toolName }: LeftEnd, turnId: string, workId: string) => ({
  actionType: kind === 'unknown' ? 'turn.unknown' : 'turn.given_up',
  classification: 'mutate' as const,
  outcome: 'failure' as const,
  target: turnId,
  metadata: { workId, ...(toolName !== undefined && { toolName }) },
});
