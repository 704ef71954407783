import type { Clock } from '../../../../kernel/clock.ts';
import { RateLimiter } from '../../../../kernel/limiter.ts';

export interface RateLimits {
  readonly perRootPerSecond: number;
  readonly perSocketPerSecond: number;
  readonly connectsPerMinute: number;
}

/** Limits how often scripts may call: each script separately, and all scripts of a root together. */
export class CallRates {
  readonly #ofScript: readonly RateLimiter[];
  readonly #ofRoot: RateLimiter;

  constructor(clock: Pick<Clock, 'monotonic'>, rates: () => RateLimits) {
    // `forget` drops keys: none may be dropped earlier.
    const limiter = (windowMs: number, limit: () => number) => new RateLimiter({ limit, windowMs, slides: true, clock, maxKeys: Infinity });
    this.#ofScript = [limiter(1_000, () => rates().perSocketPerSecond), limiter(60_000, () => rates().connectsPerMinute)];
    this.#ofRoot = limiter(1_000, () => rates().perRootPerSecond);
  }

  /** Counts a call, or returns the delay until it is allowed without counting it. */
  take(leaseId: string, rootRunId: string): number | undefined {
    const quotas = [...this.#ofScript.map((limiter) => limiter.peek(leaseId)), this.#ofRoot.peek(rootRunId)];
    const refused = quotas.filter(({ allowed }) => !allowed);
    if (refused.length > 0) return Math.ceil(Math.max(...refused.map(({ resetMs }) => resetMs)));
    for (const limiter of this.#ofScript) limiter.take(leaseId);
    this.#ofRoot.take(rootRunId);
    return undefined;
  }

  /** Forgets a script that ended. */
  forget(leaseId: string, rootRunId: string, isLastOfRoot: boolean): void {
    for (const limiter of this.#ofScript) limiter.forget(leaseId);
    if (isLastOfRoot) this.#ofRoot.forget(rootRunId);
  }
}
