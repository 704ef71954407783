import { AppError } from '../../../../kernel/app-error.ts';
import { newId, newTraceId } from '../../../../kernel/ids.ts';
import type { Reservation } from '../../../../runtime/turn-budget.ts';
import type { CallRecord } from '../../../../runtime/turn.ts';
import type { WorkFor } from '../api.ts';
import type { CallNeed, Ledger } from './ledger.ts';
import { LedgerBudget } from './turn-budget.ts';
import { WorkRow, type WorkRowDeps } from './work-row.ts';

export interface WorkNeed extends CallNeed {
  readonly operation: CallRecord['operation'];
  readonly traceId?: string;
}

/** What the calls of one work item add to, and may use. */
export interface WorkCalls {
  readonly calls: CallRecord[];
  readonly reservation: Reservation | undefined;
}

/** Accounts for the model calls of background work. */
export class WorkAccounts {
  readonly #deps: WorkRowDeps;
  readonly #ledger: Ledger;

  constructor(deps: WorkRowDeps, ledger: Ledger) {
    this.#deps = deps;
    this.#ledger = ledger;
  }

  /** Reserves, calls, settles, books and announces, whatever the outcome. */
  async run<T>({ agentId, principalId, conversationRef }: WorkFor, need: WorkNeed, call: (given: WorkCalls) => Promise<T>): Promise<T> {
    const row = new WorkRow(this.#deps, {
      id: newId('wk'),
      agentId,
      principalId,
      conversationRef: conversationRef ?? null,
      operation: need.operation,
      traceId: need.traceId ?? newTraceId(),
    });
    const budget = new LedgerBudget(this.#ledger, { agentId, principalId }, row);
    const reservation = budget.reserve(need);
    if (reservation !== undefined && 'refused' in reservation) {
      const { message, retryAfterMs } = reservation.refused;
      throw new AppError('rate_limited', message, retryAfterMs === undefined ? {} : { retryAfterMs });
    }
    const calls: CallRecord[] = [];
    try {
      await reservation?.stored;
      return await call({ calls, reservation });
    } finally {
      if (reservation === undefined) for (const one of calls) budget.spend(one);
      else reservation.settle(calls);
      await row.book(calls);
    }
  }
}
