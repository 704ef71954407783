import type { Clock } from '../../../../kernel/clock.ts';
import { refusal, type Refused } from '../../../../runtime/turn-budget.ts';
import type { AutonomyConfig } from '../config.ts';

/** Tokens and 1e-9 dollars. */
export interface Amount {
  readonly tokens: number;
  readonly nano: number;
}

interface LiveRoot {
  /** Time during which turns of it ran, up to `countedAtMs`. */
  activeMs: number;
  /** Monotonic, so that neither clock changes nor downtime use up its hours. */
  countedAtMs: number;
  tokens: number;
  nano: number;
  heldTokens: number;
  heldNano: number;
  unpriced: boolean;
}

export interface RootSeed extends Amount {
  readonly activeMs: number;
}

/** Tracks what the root runs of this process have spent and reserved; contains only those that delegated something. */
export class LiveRoots {
  readonly #budget: () => AutonomyConfig['guards']['budget'];
  readonly #clock: Clock;
  readonly #roots = new Map<string, LiveRoot>();
  /** What parts of running turns spent, such as images, before their root delegated anything. */
  readonly #early = new Map<string, Amount & { readonly isPriced: boolean }>();
  /** Running turns by root, including roots that have delegated nothing. */
  readonly #turns = new Map<string, number>();

  constructor(budget: () => AutonomyConfig['guards']['budget'], clock: Clock) {
    this.#budget = budget;
    this.#clock = clock;
  }

  has(rootRunId: string): boolean {
    return this.#roots.has(rootRunId);
  }

  ids(): readonly string[] {
    return [...this.#roots.keys()];
  }

  track(rootRunId: string, seed: RootSeed): void {
    if (this.#roots.has(rootRunId)) return;
    this.#roots.set(rootRunId, { ...seed, countedAtMs: this.#clock.monotonic(), heldTokens: 0, heldNano: 0, unpriced: false });
    const early = this.#early.get(rootRunId);
    this.#early.delete(rootRunId);
    if (early !== undefined) this.spend(rootRunId, early, early.isPriced);
  }

  /** Counts what a part of a running turn spent, also when its root delegates only later. */
  spendEarly(rootRunId: string, { tokens, nano }: Amount, isPriced: boolean): void {
    if (this.#roots.has(rootRunId)) return this.spend(rootRunId, { tokens, nano }, isPriced);
    if (!this.#turns.has(rootRunId)) return;
    const before = this.#early.get(rootRunId) ?? { tokens: 0, nano: 0, isPriced: true };
    this.#early.set(rootRunId, { tokens: before.tokens + tokens, nano: before.nano + nano, isPriced: before.isPriced && isPriced });
  }

  enterTurn(rootRunId: string): void {
    this.#count(rootRunId);
    this.#turns.set(rootRunId, (this.#turns.get(rootRunId) ?? 0) + 1);
  }

  leaveTurn(rootRunId: string): void {
    this.#count(rootRunId);
    const left = (this.#turns.get(rootRunId) ?? 1) - 1;
    if (left > 0) this.#turns.set(rootRunId, left);
    else {
      this.#turns.delete(rootRunId);
      this.#early.delete(rootRunId);
    }
  }

  /** Returns the time in which at least one turn of the root ran. Waits for a provider, an approval or a slot do not count: no turn runs then. */
  activeMs(rootRunId: string): number {
    return this.#count(rootRunId)?.activeMs ?? 0;
  }

  #count(rootRunId: string): LiveRoot | undefined {
    const root = this.#roots.get(rootRunId);
    if (root === undefined) return undefined;
    const atMs = this.#clock.monotonic();
    if (this.#turns.has(rootRunId)) root.activeMs += atMs - root.countedAtMs;
    root.countedAtMs = atMs;
    return root;
  }

  forget(rootRunId: string): void {
    this.#roots.delete(rootRunId);
  }

  spent(rootRunId: string): (Amount & { readonly unpriced: boolean }) | undefined {
    return this.#roots.get(rootRunId);
  }

  spend(rootRunId: string, { tokens, nano }: Amount, isPriced: boolean): void {
    const root = this.#roots.get(rootRunId);
    if (root === undefined) return;
    root.tokens += tokens;
    root.nano += nano;
    if (!isPriced) root.unpriced = true;
  }

  hold(rootRunId: string, { tokens, nano }: Amount, sign: 1 | -1): void {
    const root = this.#roots.get(rootRunId);
    if (root === undefined) return;
    root.heldTokens += sign * tokens;
    root.heldNano += sign * nano;
  }

  /** Returns the limit that a call of at most this cost would exceed. */
  refusal(rootRunId: string, need: Amount): Refused | undefined {
    const root = this.#roots.get(rootRunId);
    if (root === undefined) return undefined;
    const { usd, tokens, hours } = this.#budget();
    const name = 'autonomy.guards.budget';
    if (root.tokens + root.heldTokens + need.tokens > tokens)
      return refusal({ cap: `${name}.tokens`, limit: tokens, used: root.tokens, reserved: root.heldTokens, unit: 'tokens' });
    if (root.nano + root.heldNano + need.nano > usd * 1e9)
      return refusal({ cap: `${name}.usd`, limit: usd, used: root.nano / 1e9, reserved: root.heldNano / 1e9, unit: 'USD' });
    const usedHours = this.activeMs(rootRunId) / 3_600_000;
    if (usedHours < hours) return undefined;
    const message = `The turns of this root run have used up the ${hours} hours of ${name}.hours`;
    return { cap: `${name}.hours`, limit: hours, used: usedHours, message };
  }

  /** Returns what the limits leave; those of a fresh root when nothing was delegated. */
  left(rootRunId: string | undefined): { readonly tokensRemaining: number; readonly usdRemaining: number; readonly wallClockMsRemaining: number } {
    const { usd, tokens, hours } = this.#budget();
    const root = rootRunId === undefined ? undefined : this.#roots.get(rootRunId);
    const elapsedMs = rootRunId === undefined ? 0 : this.activeMs(rootRunId);
    return {
      tokensRemaining: Math.max(0, tokens - (root === undefined ? 0 : root.tokens + root.heldTokens)),
      usdRemaining: Math.max(0, usd - (root === undefined ? 0 : root.nano + root.heldNano) / 1e9),
      wallClockMsRemaining: Math.max(0, Math.round(hours * 3_600_000 - elapsedMs)),
    };
  }
}
