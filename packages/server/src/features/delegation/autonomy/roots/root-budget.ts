import type { BudgetRefusal, Refused, Reservation, TurnBudget } from '../../../../runtime/turn-budget.ts';
import { totalCost } from '../../../../llm/price.ts';
import type { CallRecord } from '../../../../runtime/turn.ts';
import type { Amount, LiveRoots } from './live-roots.ts';

export type CallNeed = Parameters<TurnBudget['reserve']>[0];

export interface RootBudgetDeps {
  readonly roots: LiveRoots;
  readonly rootRunId: string;
  /** Returns the highest possible cost of a call. */
  readonly maxCostOf: (need: CallNeed) => Amount;
  /** Called when a call of the root exceeds its budget. */
  readonly onBreach: () => void;
  /** Whether it is that of a part of a turn, which does not outlast its call. */
  readonly isPart: boolean;
  /** Returns why nothing of the root may continue. */
  readonly stopped: () => Refused | undefined;
}

/** Combines the budget of one turn with that of its root, from the moment the root delegates something. */
export class RootBudget implements TurnBudget {
  readonly #inner: TurnBudget;
  readonly #deps: RootBudgetDeps;
  /** What the turn spent before its root existed. */
  #before = { tokens: 0, nano: 0, isPriced: true };

  constructor(inner: TurnBudget, deps: RootBudgetDeps) {
    this.#inner = inner;
    this.#deps = deps;
  }

  reserve(need: CallNeed): Reservation | BudgetRefusal | undefined {
    const { roots, rootRunId, maxCostOf, stopped } = this.#deps;
    const refused = stopped();
    if (refused !== undefined) return { refused };
    if (!roots.has(rootRunId)) return this.#counted(this.#inner.reserve(need));
    this.#bring();
    const most = maxCostOf(need);
    const over = roots.refusal(rootRunId, most);
    if (over !== undefined) {
      this.#deps.onBreach();
      return { refused: over };
    }
    const inner = this.#inner.reserve(need);
    if (inner !== undefined && 'refused' in inner) return inner;
    roots.hold(rootRunId, most, 1);
    const settle = (attempts: readonly CallRecord[]): void => {
      roots.hold(rootRunId, most, -1);
      for (const attempt of attempts) this.#spend(attempt);
      if (inner !== undefined) return inner.settle(attempts);
      for (const attempt of attempts) this.#inner.spend(attempt);
    };
    const covers = (attempts: readonly CallRecord[]) =>
      roots.refusal(rootRunId, sumOf(attempts)) === undefined && (inner === undefined || inner.covers(attempts));
    return { maxOutputTokens: need.maxOutputTokens, ...inner, covers, settle };
  }

  spend(call: CallRecord): void {
    this.#spend(call);
    this.#inner.spend(call);
  }

  #counted(inner: Reservation | BudgetRefusal | undefined): Reservation | BudgetRefusal | undefined {
    if (inner === undefined || 'refused' in inner) return inner;
    const settle = (attempts: readonly CallRecord[]): void => {
      for (const attempt of attempts) this.#spend(attempt);
      inner.settle(attempts);
    };
    return { ...inner, settle };
  }

  #spend({ usage, cost }: CallRecord): void {
    const { isPart, roots, rootRunId } = this.#deps;
    if (isPart) return roots.spendEarly(rootRunId, sumOf([{ usage, cost }]), cost !== null);
    this.#before.tokens += usage.input + usage.output;
    if (cost === null) this.#before.isPriced = false;
    else this.#before.nano += totalCost(cost);
    if (roots.has(rootRunId)) this.#bring();
  }

  #bring(): void {
    const { tokens, nano, isPriced } = this.#before;
    if (tokens === 0 && nano === 0) return;
    this.#deps.roots.spend(this.#deps.rootRunId, { tokens, nano }, isPriced);
    this.#before = { tokens: 0, nano: 0, isPriced: true };
  }
}

function sumOf(calls: readonly Pick<CallRecord, 'usage' | 'cost'>[]): Amount {
  let tokens = 0;
  let nano = 0;
  for (const { usage, cost } of calls) {
    tokens += usage.input + usage.output;
    if (cost !== null) nano += totalCost(cost);
  }
  return { tokens, nano };
}
