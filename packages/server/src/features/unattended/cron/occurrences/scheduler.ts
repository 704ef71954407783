import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Live } from '../../../../kernel/config/live.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { CronConfig } from '../config.ts';
import { lateMs } from './claim.ts';
import { dueJobs, type JobRow } from '../store.ts';

export interface SchedulerDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly config: Live<Pick<CronConfig, 'maxRunsPerTick'>>;
  /** Returns the agents whose jobs must not start. */
  readonly held: () => readonly string[];
  /** Starts a due job; returns its execution id, or undefined when there was nothing to start. */
  readonly begin: (row: JobRow) => Promise<string | undefined>;
  /** Called when the clock steps back by more than `momentMs`. */
  readonly setBack: () => Promise<void>;
}

/** Longest sleep, because the system clock may be changed meanwhile. */
const longestSleepMs = 60_000;
/** Delay between two checks after jobs were started. */
const busyMs = 200;
/** Delay between two checks when more jobs are due than one check may start, so that the last of them are not late. */
const crowdedMs = 20;
const afterErrorMs = 5_000;
/** Clock synchronisation steps back by less than this. */
const momentMs = 60_000;
/** Missed jobs start one by one, with few in parallel, to avoid a burst after a restart. */
const catchUp = { spacingMs: 5_000, atOnce: 5 };

/** Schedules all jobs with a single timer for the soonest one. Queries the database only when something is or may be due. */
export class Scheduler implements AsyncDisposable {
  readonly #deps: SchedulerDeps;
  /** Missed occurrences that are running. */
  readonly #catchingUp = new Set<string>();
  #nextCatchUpMs = 0;
  #isRunning = false;
  #ticking: Promise<void> | undefined;
  #isPokedAgain = false;
  #cancelTimer = () => {};
  /** When the next check of the database is due. */
  #soonestMs = 0;
  /** The latest time seen on the clock. */
  #latestMs = 0;
  #wasSetBack = false;

  constructor(deps: SchedulerDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#isRunning = true;
    this.#wake();
  }

  /** Stops starting jobs. */
  pause(): void {
    this.#isRunning = false;
    this.#cancelTimer();
  }

  /** Checks for due jobs again, because jobs changed or an execution ended. */
  poke(executionId?: string): void {
    if (executionId !== undefined) this.#catchingUp.delete(executionId);
    this.#soonestMs = 0;
    this.#wake();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.pause();
    await this.#ticking;
  }

  #arm(): void {
    this.#cancelTimer();
    if (!this.#isRunning) return;
    const { clock } = this.#deps;
    const waitMs = Math.min(longestSleepMs, Math.max(0, this.#soonestMs - clock.now()));
    this.#cancelTimer = clock.after(waitMs, () => this.#wake());
  }

  #wake(): void {
    if (!this.#isRunning) return;
    const nowMs = this.#deps.clock.now();
    this.#noteTime(nowMs);
    if (nowMs < this.#soonestMs) return this.#arm();
    if (this.#ticking !== undefined) {
      this.#isPokedAgain = true;
      return;
    }
    this.#cancelTimer();
    this.#ticking = this.#tick()
      .catch((error: unknown) => {
        this.#deps.log.error({ err: error }, 'Failed to start due jobs');
        this.#soonestMs = this.#deps.clock.now() + afterErrorMs;
      })
      .then(() => {
        this.#ticking = undefined;
        if (this.#isPokedAgain) this.#soonestMs = 0;
        this.#isPokedAgain = false;
        if (this.#soonestMs <= this.#deps.clock.now()) this.#wake();
        else this.#arm();
      });
  }

  /** Notices that the clock stepped back: times computed before would block everything until the clock reaches them again. */
  #noteTime(nowMs: number): void {
    if (nowMs < this.#latestMs) {
      this.#soonestMs = 0;
      this.#nextCatchUpMs = 0;
      this.#wasSetBack ||= this.#latestMs - nowMs > momentMs;
    }
    this.#latestMs = nowMs;
  }

  async #tick(): Promise<void> {
    const { db, clock, config, held, setBack } = this.#deps;
    if (this.#wasSetBack) {
      await setBack();
      this.#wasSetBack = false;
    }
    const atMs = clock.now();
    const mayCatchUp = this.#hasCatchUpSlot && atMs >= this.#nextCatchUpMs;
    const limit = config.current.maxRunsPerTick;
    const due = await db.read(dueJobs, { atMs, lateAtMs: atMs - lateMs, limit, lateLimit: 1, except: held() });
    if (!this.#isRunning) return;
    const begun: Begun[] = [];
    for (const row of due.onTime) begun.push(await this.#begin(row));
    const [late] = due.late;
    if (late !== undefined && mayCatchUp) {
      const one = await this.#begin(late);
      begun.push(one);
      // Measured from the start of the job, because the check of the database may have taken a while.
      this.#nextCatchUpMs = clock.now() + catchUp.spacingMs;
      if (one.executionId !== undefined) this.#catchingUp.add(one.executionId);
    }
    const checks = [
      due.nextAtMs ?? Number.POSITIVE_INFINITY,
      // Started jobs recur; jobs beyond the limit are still waiting.
      ...(due.onTime.length > 0 ? [atMs + (due.onTime.length < limit ? busyMs : crowdedMs)] : []),
      // With all slots taken, the end of a job triggers the next check.
      ...(due.late.length > 0 && this.#hasCatchUpSlot ? [Math.max(this.#nextCatchUpMs, atMs + busyMs)] : []),
    ];
    this.#soonestMs = begun.some(({ hasFailed }) => hasFailed) ? clock.now() + afterErrorMs : Math.min(...checks);
  }

  get #hasCatchUpSlot(): boolean {
    return this.#catchingUp.size < catchUp.atOnce;
  }

  async #begin(row: JobRow): Promise<Begun> {
    try {
      return { hasFailed: false, executionId: await this.#deps.begin(row) };
    } catch (error) {
      const isFull = error instanceof AppError && error.code === 'unavailable';
      this.#deps.log[isFull ? 'warn' : 'error']({ err: error, jobId: row.id }, 'Failed to start a due job; retrying');
      return { hasFailed: true, executionId: undefined };
    }
  }
}

interface Begun {
  readonly hasFailed: boolean;
  readonly executionId: string | undefined;
}
