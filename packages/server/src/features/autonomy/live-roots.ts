import type { Clock } from '../../kernel/clock.ts';
import { refusal, type Refused } from '../../runtime/turn-budget.ts';
import type { AutonomyConfig } from './config.ts';

/** Tokens and 1e-9 dollars. */
export interface Amount {
  readonly tokens: number;
  readonly nano: number;
}

interface LiveRoot {
  readonly startedAtMs: number;
  tokens: number;
  nano: number;
  heldTokens: number;
  heldNano: number;
  unpriced: boolean;
}

export interface RootSeed extends Amount {
  readonly startedAtMs: number;
}

/** What the root runs of this process have spent and hold; only those that delegated something are here. */
export class LiveRoots {
  readonly #budget: AutonomyConfig['guards']['budget'];
  readonly #clock: Clock;
  readonly #roots = new Map<string, LiveRoot>();

  constructor(budget: AutonomyConfig['guards']['budget'], clock: Clock) {
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
    this.#roots.set(rootRunId, { ...seed, heldTokens: 0, heldNano: 0, unpriced: false });
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

  /** The cap that has no room for a call which may cost so much. */
  refusal(rootRunId: string, need: Amount): Refused | undefined {
    const root = this.#roots.get(rootRunId);
    if (root === undefined) return undefined;
    const { usd, tokens, hours } = this.#budget;
    const name = 'autonomy.guards.budget';
    if (root.tokens + root.heldTokens + need.tokens > tokens)
      return refusal({ cap: `${name}.tokens`, limit: tokens, used: root.tokens, reserved: root.heldTokens, unit: 'tokens' });
    if (root.nano + root.heldNano + need.nano > usd * 1e9)
      return refusal({ cap: `${name}.usd`, limit: usd, used: root.nano / 1e9, reserved: root.heldNano / 1e9, unit: 'USD' });
    if (this.#clock.now() < root.startedAtMs + hours * 3_600_000) return undefined;
    const usedHours = (this.#clock.now() - root.startedAtMs) / 3_600_000;
    const message = `What this request set going has used up the ${hours} hours of ${name}.hours`;
    return { cap: `${name}.hours`, limit: hours, used: usedHours, message };
  }

  /** What the caps leave; those of a fresh root where nothing was delegated. */
  left(rootRunId: string | undefined): { readonly tokensRemaining: number; readonly usdRemaining: number; readonly wallClockMsRemaining: number } {
    const { usd, tokens, hours } = this.#budget;
    const root = rootRunId === undefined ? undefined : this.#roots.get(rootRunId);
    const elapsedMs = root === undefined ? 0 : this.#clock.now() - root.startedAtMs;
    return {
      tokensRemaining: Math.max(0, tokens - (root === undefined ? 0 : root.tokens + root.heldTokens)),
      usdRemaining: Math.max(0, usd - (root === undefined ? 0 : root.nano + root.heldNano) / 1e9),
      wallClockMsRemaining: Math.max(0, Math.round(hours * 3_600_000 - elapsedMs)),
    };
  }
}
