import type { Clock } from '../../../../kernel/clock.ts';

export interface RateLimits {
  readonly perRootPerSecond: number;
  readonly perSocketPerSecond: number;
  readonly connectsPerMinute: number;
}

/** Times within a window that slides; as many are kept as may be. */
class Window {
  readonly #times: number[] = [];
  readonly #most: number;
  readonly #windowMs: number;

  constructor(most: number, windowMs: number) {
    this.#most = most;
    this.#windowMs = windowMs;
  }

  /** Milliseconds until one more may come; 0 when it may now. */
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

/** How often scripts may call: each by itself, and all of one root together. */
export class CallRates {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #limits: RateLimits;
  readonly #scripts = new Map<string, { readonly second: Window; readonly minute: Window }>();
  readonly #roots = new Map<string, Window>();

  constructor(clock: Pick<Clock, 'monotonic'>, limits: RateLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Counts a call; or how long to wait, and then nothing is counted. */
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

  /** A script ended. */
  forget(leaseId: string, rootRunId: string, isLastOfRoot: boolean): void {
    this.#scripts.delete(leaseId);
    if (isLastOfRoot) this.#roots.delete(rootRunId);
  }
}
