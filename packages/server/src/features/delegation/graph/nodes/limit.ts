import type { Clock } from '../../../../kernel/clock.ts';

/** A time limit that pauses while runs wait for something outside their control. */
export class Limit {
  readonly #clock: Clock;
  readonly #over: () => void;
  #leftMs: number;
  /** When it last resumed or paused. */
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

  /** Pauses the limit until the returned function is called; that returns how long it paused, or 0 while other callers hold it. */
  stop(): () => number {
    if (this.#waiting === 0) {
      this.#cancel();
      const atMs = this.#clock.monotonic();
      this.#leftMs = Math.max(0, this.#leftMs - (atMs - this.#atMs));
      this.#atMs = atMs;
    }
    this.#waiting += 1;
    return () => this.#resume();
  }

  end(): void {
    this.#cancel();
  }

  #resume(): number {
    this.#waiting -= 1;
    if (this.#waiting > 0) return 0;
    const atMs = this.#clock.monotonic();
    const stoppedMs = atMs - this.#atMs;
    this.#atMs = atMs;
    this.#cancel = this.#clock.after(this.#leftMs, this.#over);
    return stoppedMs;
  }
}
