/** At most so many events in any window of that length. */
export interface Quota {
  readonly limit: number;
  readonly windowMs: number;
}

const maxKeys = 10_000;

/** Counts what each of many did within a rolling window, in memory: keeps the times of at most `limit` events of each. */
export class Quotas {
  readonly #quota: Quota;
  readonly #monotonic: () => number;
  readonly #times = new Map<string, number[]>();

  constructor(quota: Quota, monotonic: () => number) {
    this.#quota = quota;
    this.#monotonic = monotonic;
  }

  /** Counts one event; undefined, or how long there is no room for it. */
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

  /** Those of whom nothing is left; where all are busy, whoever was counted first. */
  #forget(): void {
    for (const [key] of this.#times) if (this.#recent(key).length === 0) this.#times.delete(key);
    const [first] = this.#times.keys();
    if (this.#times.size >= maxKeys && first !== undefined) this.#times.delete(first);
  }
}
