/** Allows a number of events in any window of the given length. */
export interface Quota {
  readonly limit: number;
  readonly windowMs: number;
}

const maxKeys = 10_000;

/** Counts events per key within a rolling window, in memory; keeps the times of at most `limit` events of each. */
export class Quotas {
  readonly #quota: Quota;
  readonly #monotonic: () => number;
  readonly #times = new Map<string, number[]>();

  constructor(quota: Quota, monotonic: () => number) {
    this.#quota = quota;
    this.#monotonic = monotonic;
  }

  /** Counts one event. Returns undefined, or the delay until one more is allowed. */
  take(key: string): number | undefined {
    const times = this.#recent(key);
    const oldest = times[0];
    if (times.length >= this.#quota.limit && oldest !== undefined) return Math.max(1, Math.ceil(oldest + this.#quota.windowMs - this.#monotonic()));
    if (times.length === 0 && this.#times.size >= maxKeys) this.#forget();
    times.push(this.#monotonic());
    this.#times.set(key, times);
    return undefined;
  }

  remaining(key: string): number {
    return this.#quota.limit - this.#recent(key).length;
  }

  #recent(key: string): number[] {
    const times = this.#times.get(key) ?? [];
    const since = this.#monotonic() - this.#quota.windowMs;
    let gone = 0;
    while (gone < times.length && (times[gone] ?? 0) <= since) gone += 1;
    if (gone > 0) times.splice(0, gone);
    return times;
  }

  /** Drops keys without recent events; when all are busy, the oldest one. */
  #forget(): void {
    for (const [key] of this.#times) if (this.#recent(key).length === 0) this.#times.delete(key);
    const [first] = this.#times.keys();
    if (this.#times.size >= maxKeys && first !== undefined) this.#times.delete(first);
  }
}
