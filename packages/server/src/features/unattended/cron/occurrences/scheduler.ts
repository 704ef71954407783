import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { CronConfig } from '../config.ts';
import { lateMs } from './claim.ts';
import { dueJobs, type JobRow } from '../store.ts';

export interface SchedulerDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly config: Pick<CronConfig, 'maxRunsPerTick'>;
  /** Returns the agents whose jobs must not start. */
  readonly held: () => readonly string[];
  /** Starts a due job; returns its execution id, or undefined when there was nothing to start. */
  readonly begin: (row: JobRow) => Promise<string | undefined>;
  /** Called when the clock steps back by more than `momentMs`. */
  readonly setBack: () => Promise<void>;
}

export interface Scheduler extends AsyncDisposable {
  start(): void;
  /** Stops starting jobs. */
  pause(): void;
  /** Checks for due jobs again, because jobs changed or an execution ended. */
  poke(executionId?: string): void;
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
export function createScheduler({ db, clock, log, config, held, begin, setBack }: SchedulerDeps): Scheduler {
  const catchingUp = new Set<string>();
  let nextCatchUpMs = 0;
  let isRunning = false;
  let ticking: Promise<void> | undefined;
  let needsRerun = false;
  let cancel = () => {};
  /** When the next check of the database is due. */
  let soonestMs = 0;
  /** The latest time seen on the clock. */
  let latestMs = 0;
  let wasSetBack = false;

  function arm(): void {
    cancel();
    if (!isRunning) return;
    const waitMs = Math.min(longestSleepMs, Math.max(0, soonestMs - clock.now()));
    cancel = clock.after(waitMs, wake);
  }

  function wake(): void {
    if (!isRunning) return;
    const nowMs = clock.now();
    if (nowMs < latestMs) {
      // The clock stepped back: times computed before would block everything until the clock reaches them again.
      soonestMs = 0;
      nextCatchUpMs = 0;
      wasSetBack ||= latestMs - nowMs > momentMs;
    }
    latestMs = nowMs;
    if (nowMs < soonestMs) return arm();
    if (ticking !== undefined) {
      needsRerun = true;
      return;
    }
    cancel();
    ticking = tick()
      .catch((error: unknown) => {
        log.error({ err: error }, 'Failed to start due jobs');
        soonestMs = clock.now() + afterErrorMs;
      })
      .then(() => {
        ticking = undefined;
        if (needsRerun) {
          needsRerun = false;
          soonestMs = 0;
        }
        if (soonestMs <= clock.now()) wake();
        else arm();
      });
  }

  async function tick(): Promise<void> {
    if (wasSetBack) {
      await setBack();
      wasSetBack = false;
    }
    const atMs = clock.now();
    const mayCatchUp = catchingUp.size < catchUp.atOnce && atMs >= nextCatchUpMs;
    const limit = config.maxRunsPerTick;
    const due = await db.read(dueJobs, { atMs, lateAtMs: atMs - lateMs, limit, lateLimit: 1, except: held() });
    if (!isRunning) return;
    let failed = false;
    const attempt = async (row: JobRow): Promise<string | undefined> => {
      try {
        return await begin(row);
      } catch (error) {
        failed = true;
        const isFull = error instanceof AppError && error.code === 'unavailable';
        log[isFull ? 'warn' : 'error']({ err: error, jobId: row.id }, 'Failed to start a due job; retrying');
        return undefined;
      }
    };
    for (const row of due.onTime) await attempt(row);
    const [late] = due.late;
    if (late !== undefined && mayCatchUp) {
      const executionId = await attempt(late);
      // Measured from the start of the job, because the check of the database may have taken a while.
      nextCatchUpMs = clock.now() + catchUp.spacingMs;
      if (executionId !== undefined) catchingUp.add(executionId);
    }
    const checks = [
      due.nextAtMs ?? Number.POSITIVE_INFINITY,
      // Started jobs recur; jobs beyond the limit are still waiting.
      ...(due.onTime.length > 0 ? [atMs + (due.onTime.length < limit ? busyMs : crowdedMs)] : []),
      // With all slots taken, the end of a job triggers the next check.
      ...(due.late.length > 0 && catchingUp.size < catchUp.atOnce ? [Math.max(nextCatchUpMs, atMs + busyMs)] : []),
    ];
    soonestMs = failed ? clock.now() + afterErrorMs : Math.min(...checks);
  }

  return {
    start() {
      isRunning = true;
      wake();
    },
    pause() {
      isRunning = false;
      cancel();
    },
    poke(executionId) {
      if (executionId !== undefined) catchingUp.delete(executionId);
      soonestMs = 0;
      wake();
    },
    async [Symbol.asyncDispose]() {
      isRunning = false;
      cancel();
      await ticking;
    },
  };
}
