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
  /** Agents whose jobs are left alone. */
  readonly held: () => readonly string[];
  /** Begins a job that is due; the id of its execution, or undefined when there was nothing to begin. */
  readonly begin: (row: JobRow) => Promise<string | undefined>;
  /** The clock was set back by more than a moment. */
  readonly setBack: () => Promise<void>;
}

export interface Scheduler extends AsyncDisposable {
  start(): void;
  /** Begins nothing more. */
  pause(): void;
  /** Jobs changed, so that the next one may be due at another time; or an execution ended. */
  poke(executionId?: string): void;
}

/** The longest sleep: the clock on the wall may be set, and is looked at again. */
const longestSleepMs = 60_000;
/** Between two looks when one has begun something. */
const busyMs = 200;
/** Between two looks when more is due than one look begins: those at the end of the line must not become late by it. */
const crowdedMs = 20;
const afterErrorMs = 5_000;
/** A clock that is disciplined goes back by less. */
const momentMs = 60_000;
/** What was missed is begun one by one, and a few at once, so that a start is no storm. */
const catchUp = { spacingMs: 5_000, atOnce: 5 };

/** One timer for the soonest of all jobs. It asks the database only when something is due, or may be. */
export function createScheduler({ db, clock, log, config, held, begin, setBack }: SchedulerDeps): Scheduler {
  const catchingUp = new Set<string>();
  let nextCatchUpMs = 0;
  let isRunning = false;
  let ticking: Promise<void> | undefined;
  let isAskedAgain = false;
  let cancel = () => {};
  /** When the next look at the database is due. */
  let soonestMs = 0;
  /** The latest that the clock has shown. */
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
      // The clock was set back: what was reckoned by what it showed before would hold everything up until it shows that again.
      soonestMs = 0;
      nextCatchUpMs = 0;
      wasSetBack ||= latestMs - nowMs > momentMs;
    }
    latestMs = nowMs;
    if (nowMs < soonestMs) return arm();
    if (ticking !== undefined) {
      isAskedAgain = true;
      return;
    }
    cancel();
    ticking = tick()
      .catch((error: unknown) => {
        log.error({ err: error }, 'Jobs that are due could not be begun');
        soonestMs = clock.now() + afterErrorMs;
      })
      .then(() => {
        ticking = undefined;
        if (isAskedAgain) {
          isAskedAgain = false;
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
        log[isFull ? 'warn' : 'error']({ err: error, jobId: row.id }, 'A job that is due could not be begun; it is tried again');
        return undefined;
      }
    };
    for (const row of due.onTime) await attempt(row);
    const [late] = due.late;
    if (late !== undefined && mayCatchUp) {
      const executionId = await attempt(late);
      // From when it began: the look at the database may have taken a while.
      nextCatchUpMs = clock.now() + catchUp.spacingMs;
      if (executionId !== undefined) catchingUp.add(executionId);
    }
    const looks = [
      due.nextAtMs ?? Number.POSITIVE_INFINITY,
      // Those that were begun come again; those beyond the limit still wait.
      ...(due.onTime.length > 0 ? [atMs + (due.onTime.length < limit ? busyMs : crowdedMs)] : []),
      // With all places taken, the end of one of them looks again.
      ...(due.late.length > 0 && catchingUp.size < catchUp.atOnce ? [Math.max(nextCatchUpMs, atMs + busyMs)] : []),
    ];
    soonestMs = failed ? clock.now() + afterErrorMs : Math.min(...looks);
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
