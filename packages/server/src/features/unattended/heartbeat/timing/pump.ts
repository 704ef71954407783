import type { Clock } from '../../../../kernel/clock.ts';

/** Longest time between two runs, because the clock may be changed meanwhile. */
const longestSleepMs = 60_000;

/** Starts what is due, and sleeps until more is. */
export class Pump {
  readonly #clock: Clock;
  readonly #run: () => number | undefined;
  readonly #setBack: (byMs: number) => void;
  #phase: 'new' | 'running' | 'closed' = 'new';
  #latestMs = 0;
  #cancelTimer = () => {};

  /** `run` returns when it must run again, if at all; `setBack` is called after a backward clock step. */
  constructor(clock: Clock, run: () => number | undefined, setBack: (byMs: number) => void) {
    this.#clock = clock;
    this.#run = run;
    this.#setBack = setBack;
  }

  get isClosed(): boolean {
    return this.#phase === 'closed';
  }

  start(): void {
    if (this.#phase === 'new') this.#phase = 'running';
  }

  /** Does nothing before the start. */
  run(): void {
    if (this.#phase !== 'running') return;
    const now = this.#clock.now();
    if (now < this.#latestMs) this.#setBack(this.#latestMs - now);
    this.#latestMs = now;
    const next = this.#run();
    this.#cancelTimer();
    const pump = () => this.run();
    if (next !== undefined) this.#cancelTimer = this.#clock.after(Math.max(0, Math.min(next - this.#clock.now(), longestSleepMs)), pump);
  }

  close(): void {
    this.#phase = 'closed';
    this.#cancelTimer();
  }
}
