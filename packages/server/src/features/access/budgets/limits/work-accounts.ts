import { AppError } from '../../../../kernel/app-error.ts';
import { newId, newTraceId } from '../../../../kernel/ids.ts';
import type { PartOfRoot } from '../../../../kernel/call-context.ts';
import type { Reservation, TurnBudget } from '../../../../runtime/turn-budget.ts';
import type { CallRecord } from '../../../../runtime/turn.ts';
import type { CallsOf, NotedCalls, PartOfWork, WorkFor } from '../api.ts';
import type { CallNeed, Ledger, TurnUse } from './ledger.ts';
import { LedgerBudget } from './turn-budget.ts';
import { WorkRow, type WorkRowDeps } from './work-row.ts';

export interface WorkNeed<T> extends CallNeed {
  readonly operation: CallRecord['operation'];
  readonly traceId?: string;
  /** Returns the text that is stored with the node that it summarizes. */
  readonly answerOf?: (answer: T) => string;
}

/** What the calls of one work item add to, and may use. */
export interface WorkCalls {
  readonly calls: readonly CallRecord[];
  readonly add: (call: CallRecord) => void;
  readonly reservation: Reservation | undefined;
}

export interface WorkAccountsDeps extends WorkRowDeps {
  readonly openCalls: (of: CallsOf) => NotedCalls;
  /** Returns what a running turn has used; undefined for work that is a part of a root run only. */
  readonly useOf: (part: PartOfRoot) => TurnUse | undefined;
  /** Applies the limits of a root run to work that is a part of it. */
  readonly capped: (budget: TurnBudget, part: PartOfRoot) => TurnBudget;
}

/** Returns what the calls of a part are added to: a graph charges the node that it calls for, and not the run that started the graph. */
function toPartOfWork(part: PartOfRoot | undefined): PartOfWork {
  if (part === undefined) return {};
  const { rootRunId, run, node, turnId } = part;
  return {
    rootRunId,
    ...(node === undefined && turnId !== undefined && run !== undefined && { runId: run.runId }),
    ...(node !== undefined && { node }),
  };
}

/** Operation of all calls that nobody asked for. */
const syntheticOperation = 'evaluation';

/** Accounts for the model calls of background work. */
export class WorkAccounts {
  readonly #deps: WorkAccountsDeps;
  readonly #ledger: Ledger;

  constructor(deps: WorkAccountsDeps, ledger: Ledger) {
    this.#deps = deps;
    this.#ledger = ledger;
  }

  /** Reserves, calls, settles, books and announces, whatever the outcome. */
  async run<T>(work: WorkFor, need: WorkNeed<T>, call: (given: WorkCalls) => Promise<T>): Promise<T> {
    const { agentId, principalId, conversationRef, part, summarizes } = work;
    const of = { id: newId('wk'), agentId, principalId, conversationRef: conversationRef ?? null, ...toPartOfWork(part), summarizes };
    const row = new WorkRow(this.#deps, {
      ...of,
      operation: part?.synthetic === true ? syntheticOperation : need.operation,
      traceId: need.traceId ?? newTraceId(),
    });
    const own = new LedgerBudget(this.#ledger, { agentId, principalId }, row, { of: part && this.#deps.useOf(part) });
    const budget = part === undefined ? own : this.#deps.capped(own, part);
    const reservation = budget.reserve(need);
    if (reservation !== undefined && 'refused' in reservation) {
      const { message, retryAfterMs, isRevoked } = reservation.refused;
      if (isRevoked === true) throw new AppError('cancelled', message);
      throw new AppError('rate_limited', message, retryAfterMs === undefined ? {} : { retryAfterMs });
    }
    const calls: CallRecord[] = [];
    const noted = this.#deps.openCalls(of);
    const add = (made: CallRecord) => {
      const one: CallRecord = part?.synthetic === true ? { ...made, operation: syntheticOperation } : made;
      noted.add(one);
      calls.push(one);
    };
    let kept: string | undefined;
    try {
      if (reservation?.stored !== undefined) {
        await reservation.stored;
        noted.begin();
      }
      const answer = await call({ calls, add, reservation });
      if (need.answerOf !== undefined) {
        kept = need.answerOf(answer);
        noted.keep(kept);
      }
      return answer;
    } finally {
      noted.settle();
      if (reservation === undefined) for (const one of calls) budget.spend(one);
      else reservation.settle(calls);
      await row.book(calls, kept);
      for (const one of calls) work.onCall?.(one);
      noted.close();
    }
  }
}
