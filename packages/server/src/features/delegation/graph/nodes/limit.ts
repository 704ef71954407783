import type { Clock } from '../../../../kernel/clock.ts';

/** Time that runs out, but for the while in which runs wait for what is not in their hands. */
export class Limit {
  readonly #clock: Clock;
  readonly #over: () => void;
  #leftMs: number;
  /** When it went on last, or was stopped. */
  #atMs: number;
  #waiting = 0;
  #cancel: () => void;

  constructor(clock: Clock, leftMs: number, over: () => void) {
    this.#clock = clock;
    this.#over = over;
    this.#leftMs = Math.max(0, leftMs);
    this.#atMs = clock.monotonic();
    this.#cancel = clock.after(this.#leftMs, over);
  }

  /** It stands still until what this returns is called, which gives how long it did: 0 while another one holds it. */
  stop(): () => number {
    if (this.#waiting === 0) {
      this.#cancel();
      const atMs = this.#clock.monotonic();
      this.#leftMs = Math.max(0, this.#leftMs - (atMs - this.#atMs));
      this.#atMs = atMs;
    }
    this.#waiting += 1;
    return () => this.#goOn();
  }

  end(): void {
    this.#cancel();
  }

  #goOn(): number {
    this.#waiting -= 1;
    if (this.#waiting > 0) return 0;
    const atMs = this.#clock.monotonic();
    const stoodMs = atMs - this.#atMs;
    this.#atMs = atMs;
    this.#cancel = this.#clock.after(this.#leftMs, this.#over);
    return stoodMs;
  }
}
