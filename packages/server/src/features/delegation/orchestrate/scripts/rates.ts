import type { Clock } from '../../../../kernel/clock.ts';

export interface RateLimits {
  readonly perRootPerSecond: number;
  readonly perSocketPerSecond: number;
  readonly connectsPerMinute: number;
}

/** Times within a sliding window; keeps at most as many as the limit. */
class Window {
  readonly #times: number[] = [];
  readonly #most: number;
  readonly #windowMs: number;

  constructor(most: number, windowMs: number) {
    this.#most = most;
    this.#windowMs = windowMs;
  }

  /** Returns the delay in milliseconds until one more call is allowed; 0 when it is allowed now. */
  waitMs(now: number): number {
    while (this.#times.length > 0 && now - (this.#times[0] ?? 0) >= this.#windowMs) this.#times.shift();
    return this.#times.length < this.#most ? 0 : Math.ceil(this.#windowMs - (now - (this.#times[0] ?? now)));
  }

  take(now: number): void {
    this.#times.push(now);
  }

  get isEmpty(): boolean {
    return this.#times.length === 0;
  }
}

/** Limits how often scripts may call: each script separately, and all scripts of a root together. */
export class CallRates {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #limits: RateLimits;
  readonly #scripts = new Map<string, { readonly second: Window; readonly minute: Window }>();
  readonly #roots = new Map<string, Window>();

  constructor(clock: Pick<Clock, 'monotonic'>, limits: RateLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Counts a call, or returns the delay until it is allowed without counting it. */
  take(leaseId: string, rootRunId: string): number | undefined {
    const now = this.#clock.monotonic();
    const { perRootPerSecond, perSocketPerSecond, connectsPerMinute } = this.#limits;
    const script = this.#scripts.get(leaseId) ?? { second: new Window(perSocketPerSecond, 1000), minute: new Window(connectsPerMinute, 60_000) };
    const root = this.#roots.get(rootRunId) ?? new Window(perRootPerSecond, 1000);
    this.#scripts.set(leaseId, script);
    this.#roots.set(rootRunId, root);
    const windows = [script.second, script.minute, root];
    const waitMs = Math.max(...windows.map((each) => each.waitMs(now)));
    if (waitMs > 0) return waitMs;
    for (const each of windows) each.take(now);
    return undefined;
  }

  /** Forgets a script that ended. */
  forget(leaseId: string, rootRunId: string, isLastOfRoot: boolean): void {
    this.#scripts.delete(leaseId);
    if (isLastOfRoot) this.#roots.delete(rootRunId);
  }
}
