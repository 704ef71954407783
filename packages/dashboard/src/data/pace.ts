/** Calls at once, and the time for one more after them: half of the requests that a token has in a minute, unless it is configured otherwise. */
const burst = 30;
const everyMs = 1_200;

/** Spaces the calls of a live view, so that what changes all the time does not use up the requests of the rest of the dashboard. */
export class Pace {
  #left = burst;
  #atMs: number;

  constructor(nowMs: number) {
    this.#atMs = nowMs;
  }

  /** Counts a call; returns how long to wait before it, in milliseconds. */
  next(nowMs: number): number {
    this.#left = Math.min(burst, this.#left + (nowMs - this.#atMs) / everyMs) - 1;
    this.#atMs = nowMs;
    return this.#left >= 0 ? 0 : Math.ceil(-this.#left * everyMs);
  }
}
