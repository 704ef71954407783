import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation, OperationCall } from '../../../../kernel/db/operation.ts';
import type { TakenResults } from '../../../../runtime/background.ts';
import type { ReserveStore } from '../../../access/budgets/api.ts';
import type { Alongside } from '../api.ts';
import { openRow, type TurnStart } from './outcome.ts';
import { reserveForTurn, type TurnOpening } from '../store.ts';

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
