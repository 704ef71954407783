import { totalCost } from '../../../../llm/price.ts';
import type { BudgetRefusal, Reservation, TurnBudget } from '../../../../runtime/turn-budget.ts';
import type { CallRecord } from '../../../../runtime/turn.ts';
import type { ReserveStore } from '../api.ts';
import type { Amount, CallNeed, Held, Ledger, TurnUse } from './ledger.ts';

/** The share of the ledger that one turn, or one background work item, uses. */
export class LedgerBudget implements TurnBudget {
  readonly #ledger: Ledger;
  readonly #agentId: string;
  readonly #store: ReserveStore;
  readonly #turn: TurnUse;

  /** `used`: usage of the turn before another process resumed it. `of`: the turn of which the work is a part. */
  constructor(
    ledger: Ledger,
    { agentId, principalId }: { readonly agentId: string; readonly principalId: string },
    store: ReserveStore,
    { used = { tokens: 0, nano: 0 }, of }: { readonly used?: Amount | undefined; readonly of?: TurnUse | undefined } = {},
  ) {
    this.#ledger = ledger;
    this.#agentId = agentId;
    this.#store = store;
    this.#turn = { tokens: used.tokens, nano: used.nano, heldTokens: 0, heldNano: 0, principalId, of };
  }

  get use(): TurnUse {
    return this.#turn;
  }

  reserve(need: CallNeed): Reservation | BudgetRefusal | undefined {
    const held = this.#ledger.hold(this.#agentId, this.#turn, need);
    if (held === undefined || 'refused' in held) return held;
    return this.#reservation(held, need);
  }

  spend(call: CallRecord): void {
    this.#ledger.spend(this.#agentId, this.#turn, amountOf(call));
  }

  #reservation(first: Held, { models }: CallNeed): Reservation {
    const { tokens, nano, inMoney, maxOutputTokens, cappedBy } = first;
    const model = models[0] === undefined ? '' : `${models[0].provider}/${models[0].modelId}`;
    const store = () => (inMoney ? this.#store.reserve(this.#turn.nano + this.#turn.heldNano, model) : undefined);
    let held: Amount = { tokens, nano };
    const stored = store();
    // When the turn ends before anything awaits it, a rejection must not go unhandled.
    stored?.catch(() => undefined);
    return {
      maxOutputTokens,
      ...(cappedBy !== undefined && { cappedBy }),
      ...(stored !== undefined && { stored }),
      covers: (attempts) => {
        const used = sumOf(attempts);
        const more = { tokens: Math.max(0, used.tokens + tokens - held.tokens), nano: Math.max(0, used.nano + nano - held.nano) };
        if (!this.#ledger.extend(this.#agentId, this.#turn, more)) return false;
        held = { tokens: held.tokens + more.tokens, nano: held.nano + more.nano };
        return store()?.then(() => true) ?? true;
      },
      settle: (attempts) => {
        this.#ledger.release(this.#agentId, this.#turn, held);
        if (attempts.length > 0) this.#ledger.spend(this.#agentId, this.#turn, sumOf(attempts));
      },
    };
  }
}

function amountOf({ usage, cost }: CallRecord): Amount {
  return { tokens: usage.input + usage.output, nano: cost === null ? 0 : totalCost(cost) };
}

function sumOf(calls: readonly CallRecord[]): Amount {
  let tokens = 0;
  let nano = 0;
  for (const call of calls) {
    const amount = amountOf(call);
    tokens += amount.tokens;
    nano += amount.nano;
  }
  return { tokens, nano };
}
