import type { Db } from '../../../../kernel/db/db.ts';
import type { Operation } from '../../../../kernel/db/operation.ts';
import type { ReserveStore } from '../../../access/budgets/api.ts';
import type { Alongside } from '../api.ts';
import { openRow, type TurnStart } from './commit.ts';
import { reserveForTurn, type TurnOpening } from '../store.ts';

/** Opens the row of a turn before its end, when a crash must leave a trace. */
export class OpenRow implements ReserveStore {
  readonly #db: Db;
  readonly #openTurn: Operation<TurnOpening, void>;
  readonly #turn: TurnStart;
  readonly #alongside: Alongside | undefined;
  #reserved: Pick<TurnOpening['turn'], 'reservedNano' | 'model'> | undefined;
  #isOpen = false;
  #begun: Promise<void> | undefined;
  /** Number of reported tasks already in the row. */
  #reported = 0;

  constructor(deps: { readonly db: Db; readonly openTurn: Operation<TurnOpening, void> }, turn: TurnStart, alongside: Alongside | undefined) {
    this.#db = deps.db;
    this.#openTurn = deps.openTurn;
    this.#turn = turn;
    this.#alongside = alongside;
  }

  /** Opens the row before a tool of class `once`, with the caller's rows the first time; `reported`: tasks whose results the turn received. */
  beforeOnce(reported: readonly string[]): Promise<void> {
    const ids = reported.slice(this.#reported);
    this.#reported = reported.length;
    if (this.#begun === undefined) {
      const rows = this.#alongside?.opened?.({ conversationRef: this.#turn.conversationRef });
      this.#begun = this.#open(ids.length === 0 ? rows : { ...rows, tasks: { ids: [...(rows?.tasks?.ids ?? []), ...ids], state: 'telling' } });
    } else if (ids.length > 0) this.#begun = this.#begun.then(() => this.#open({ tasks: { ids, state: 'telling' } }));
    return this.#begun;
  }

  /** Reserves the cost of a model call under a budget in money. */
  reserve(reservedNano: number, model: string): Promise<void> {
    this.#reserved = { reservedNano, model };
    // Writes of one caller apply in the order of their calls.
    return this.#isOpen ? this.#db.write(reserveForTurn, { id: this.#turn.id, reservedNano, model }) : this.#open(undefined);
  }

  #open(alongside: TurnOpening['alongside']): Promise<void> {
    this.#isOpen = true;
    return this.#db.write(this.#openTurn, { turn: { ...this.#turn, ...openRow, ...this.#reserved }, alongside });
  }
}
