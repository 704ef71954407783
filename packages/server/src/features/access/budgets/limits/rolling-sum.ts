/**
 * Sums tokens and 1e-9 dollars over the last `count` time steps and the current one: never less than the exact
 * window, and at most one step more. Bounded, without allocation after construction; integers, so that nothing drifts.
 */
export class RollingSum {
  readonly #stepMs: number;
  readonly #tokens: Float64Array;
  readonly #nano: Float64Array;
  #step = Number.NEGATIVE_INFINITY;
  #sumTokens = 0;
  #sumNano = 0;

  constructor(stepMs: number, count: number) {
    this.#stepMs = stepMs;
    this.#tokens = new Float64Array(count + 1);
    this.#nano = new Float64Array(count + 1);
  }

  /** Inserts past usage where it belongs; skips usage older than the window. */
  add(atMs: number, nowMs: number, tokens: number, nano: number): void {
    this.#advance(nowMs);
    const step = Math.min(this.#step, Math.floor(atMs / this.#stepMs));
    const { length } = this.#tokens;
    if (this.#step - step >= length) return;
    const place = step % length;
    this.#tokens[place] = (this.#tokens[place] ?? 0) + tokens;
    this.#nano[place] = (this.#nano[place] ?? 0) + nano;
    this.#sumTokens += tokens;
    this.#sumNano += nano;
  }

  used(nowMs: number, unit: 'tokens' | 'nano'): number {
    this.#advance(nowMs);
    return unit === 'tokens' ? this.#sumTokens : this.#sumNano;
  }

  /** Returns the milliseconds until so much usage has left the window; undefined when it never holds so much. */
  freesInMs(nowMs: number, unit: 'tokens' | 'nano', amount: number): number | undefined {
    this.#advance(nowMs);
    const { length } = this.#tokens;
    const values = unit === 'tokens' ? this.#tokens : this.#nano;
    let freed = 0;
    for (let step = this.#step - length + 1; step <= this.#step; step += 1) {
      const value = values[step % length] ?? 0;
      freed += value;
      if (value > 0 && freed >= amount) return (step + length) * this.#stepMs - nowMs;
    }
    return undefined;
  }

  #advance(nowMs: number): void {
    const now = Math.floor(nowMs / this.#stepMs);
    if (now <= this.#step) return;
    const { length } = this.#tokens;
    for (let step = Math.max(this.#step + 1, now - length + 1); step <= now; step += 1) {
      const place = step % length;
      this.#sumTokens -= this.#tokens[place] ?? 0;
      this.#sumNano -= this.#nano[place] ?? 0;
      this.#tokens[place] = 0;
      this.#nano[place] = 0;
    }
    this.#step = now;
  }
}
