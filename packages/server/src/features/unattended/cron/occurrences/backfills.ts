import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Log } from '../../../../kernel/log.ts';
import { findJob, type JobRow } from '../store.ts';
import { nextBackfills } from './backfill-store.ts';

export interface BackfillsDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  /** Returns the agents whose times must wait. */
  readonly held: () => readonly string[];
  /** Starts a queued time; returns false when it must not run. */
  readonly begin: (row: JobRow, scheduledForMs: number) => Promise<boolean>;
}

/** Jobs whose queued times run together: they share the slots of scheduled work. */
const atOnce = 4;
const retryMs = 5_000;

/** Runs queued times of jobs, one at a time for each job. Reads the queue only when something is in it. */
export class Backfills implements AsyncDisposable {
  readonly #deps: BackfillsDeps;
  #isRunning = false;
  /** An earlier process may have left some. */
  #isOpen = true;
  #working: Promise<void> | undefined;
  #isPokedAgain = false;
  #cancelRetry = () => {};

  constructor(deps: BackfillsDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#isRunning = true;
    this.poke();
  }

  /** Stops starting queued times. */
  pause(): void {
    this.#isRunning = false;
    this.#cancelRetry();
  }

  /** Call when times were queued. */
  queued(): void {
    this.#isOpen = true;
    this.poke();
  }

  /** Checks the queue again, because a run ended or an agent changed. */
  poke(): void {
    if (!this.#isRunning || !this.#isOpen) return;
    if (this.#working !== undefined) {
      this.#isPokedAgain = true;
      return;
    }
    this.#cancelRetry();
    this.#working = this.#work()
      .catch((error: unknown) => {
        this.#deps.log.error({ err: error }, 'Failed to start the queued times of a job; retrying');
        this.#retry();
      })
      .then(() => {
        this.#working = undefined;
        if (!this.#isPokedAgain) return;
        this.#isPokedAgain = false;
        this.poke();
      });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.pause();
    await this.#working;
  }

  async #work(): Promise<void> {
    const { db, held, begin } = this.#deps;
    // Before the read: what is queued during it sets this again.
    this.#isOpen = false;
    const { next, isOpen } = await db.read(nextBackfills, { except: held(), atOnce }).catch((error: unknown) => {
      this.#isOpen = true;
      throw error;
    });
    this.#isOpen ||= isOpen;
    for (const { jobId, scheduledForMs } of next) {
      if (!this.#isRunning) return;
      const row = await db.read(findJob, { id: jobId });
      if (row === undefined || !(await begin(row, scheduledForMs))) this.#retry();
    }
  }

  #retry(): void {
    this.#cancelRetry();
    if (this.#isRunning) this.#cancelRetry = this.#deps.clock.after(retryMs, () => this.poke());
  }
}
