import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import type { CallRecord } from '../../../../runtime/turn.ts';
import type { ReserveStore, WorkBooking, WorkOpening } from '../api.ts';

export interface WorkRowDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly bootId: string;
  readonly openWork: Operation<WorkOpening, void>;
  readonly bookWork: Operation<WorkBooking, void>;
  /** A further call of work that has a row. */
  readonly reserveForTurn: Operation<{ readonly id: string; readonly reservedNano: number; readonly model: string }, void>;
  /** Reports booked calls (`observability:token_usage`). */
  readonly announceUsed: (
    calls: readonly CallRecord[],
    about: { readonly turnId: string; readonly traceId: string; readonly agentId: string; readonly conversationRef?: string | undefined },
    owner: string,
  ) => void;
}

/** Known when the row is opened. */
type Later = 'model' | 'reservedNano' | 'startedAtMs' | 'bootId';
type NewWork = Omit<WorkOpening, Later | 'part'> & Pick<WorkBooking, 'rootRunId' | 'runId' | 'node' | 'summarizes'>;

/** The row of running work under a cap in money, and the booking that replaces it. */
export class WorkRow implements ReserveStore {
  readonly #deps: WorkRowDeps;
  readonly #work: NewWork;
  #opened = false;

  constructor(deps: WorkRowDeps, work: NewWork) {
    this.#deps = deps;
    this.#work = work;
  }

  reserve(reservedNano: number, model: string): Promise<void> {
    const { db, openWork, reserveForTurn, clock, bootId } = this.#deps;
    if (this.#opened) return db.write(reserveForTurn, { id: this.#work.id, reservedNano, model });
    this.#opened = true;
    const { rootRunId, runId, node, summarizes: _, ...work } = this.#work;
    const part = rootRunId === undefined ? undefined : { rootRunId, runId, node };
    return db.write(openWork, { ...work, part, reservedNano, model, startedAtMs: clock.now(), bootId });
  }

  /** `answer`: the text that is stored with the node that it summarizes. */
  async book(calls: readonly CallRecord[], answer?: string): Promise<void> {
    if (calls.length === 0 && !this.#opened) return;
    const { db, bookWork, announceUsed } = this.#deps;
    const { operation: _, traceId, ...of } = this.#work;
    const { id, agentId, principalId, conversationRef } = of;
    await db.write(bookWork, { ...of, opened: this.#opened, calls, answer });
    announceUsed(calls, { turnId: id, traceId, agentId, conversationRef: conversationRef ?? undefined }, principalId);
  }
}
