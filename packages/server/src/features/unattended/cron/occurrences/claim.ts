import type { CronSchedule, CronTrigger } from '@gatehouse/contract';
import { hash } from 'node:crypto';
import { newId } from '../../../../kernel/ids.ts';
import type { NewWork } from '../../durable/api.ts';
import { isDeliveryAsked } from './finish.ts';
import type { JobAdvance, OccurrenceRow } from './occurrence-store.ts';
import type { Job } from '../jobs/job.ts';
import { nextRun, runsBetween } from '../schedule/schedule.ts';
import { workOf } from './work.ts';

/** What `claimOccurrence` takes. */
export interface ClaimPlan {
  readonly occurrence: OccurrenceRow;
  readonly work: NewWork;
  readonly advance: JobAdvance;
  readonly skipped: readonly OccurrenceRow[];
}

/** What `claimManually` takes. */
export interface ManualPlan {
  readonly occurrence: OccurrenceRow;
  readonly work: NewWork;
  /** Occurrences of the job that may run at once. */
  readonly maxOpen: number;
}

export interface Claiming {
  readonly bootId: string;
  readonly nowMs: number;
  /** When this run of the daemon began, by the clock as it is now. */
  readonly bootedAtMs: number;
  /** The job begins at most once in this time, however often its schedule says so. */
  readonly leastMs: number;
  /** Over which the jobs are spread. */
  readonly staggerWindowMs: number;
}

/** Later than this, an occurrence is caught up with. */
export const lateMs = 60_000;
/** Records of missed times that one claim writes; the last one stands for those beyond. */
const maxSkipped = 1000;
/** Runs of one job at once: they wait for one another in its conversation, in places that other jobs need. */
export const maxOpenByHand = 4;

/** When a job may begin that has its turn at `runMs`: one that comes again is spread over the window, by its id. */
export function dueTime(job: { readonly id: string; readonly schedule: CronSchedule }, runMs: number | null, windowMs: number): number | null {
  if (runMs === null || job.schedule.kind === 'at' || windowMs <= 0) return runMs;
  return runMs + (Number.parseInt(hash('sha256', job.id).slice(0, 8), 16) % windowMs);
}

/**
 * What is to be done about a job that is due: the times that it missed collapse into one run, that of the last of them; each
 * other one gets a record that says so.
 */
export function planClaim(job: Job, { bootId, nowMs, bootedAtMs, leastMs, staggerWindowMs }: Claiming): ClaimPlan {
  const { row, schedule } = job;
  const firstMs = row.nextRunAtMs ?? nowMs;
  // With a window, what is due now may have had its turn a while ago; what came since has not had its own.
  const untilMs = Math.max(firstMs, nowMs - ((row.dueAtMs ?? firstMs) - firstMs));
  const { scheduledForMs, missed, more } = collapse(schedule, firstMs, untilMs, leastMs);
  const nextRunAtMs = nextRun(schedule, Math.max(nowMs, scheduledForMs));
  const dueAtMs = dueTime({ id: row.id, schedule }, nextRunAtMs, staggerWindowMs);
  const wasDueMs = Math.max(scheduledForMs, row.dueAtMs ?? 0);
  // While the daemon was down, or too busy; what its owner added since was not missed.
  const isLate = nowMs - wasDueMs > lateMs || (wasDueMs < bootedAtMs && row.createdAtMs < bootedAtMs);
  const trigger = isLate || missed.length > 0 ? 'catchup' : 'scheduled';
  const occurrence = occurrenceOf(job, { trigger, scheduledForMs, triggerClass: '', bootId, nowMs });
  return {
    occurrence,
    work: workOf(job, occurrence, nowMs),
    advance: {
      id: row.id,
      revision: row.revision,
      state: schedule.kind === 'at' ? 'one_shot_claimed' : 'scheduled',
      nextRunAtMs,
      dueAtMs: dueAtMs === null ? null : Math.max(dueAtMs, nowMs + leastMs),
      highWaterMs: scheduledForMs,
      activeExecutionId: occurrence.executionId,
      claimedForMs: scheduledForMs,
      claimedAtMs: nowMs,
    },
    skipped: missed.map((missedMs, index) => ({
      ...occurrenceOf(job, { trigger: 'catchup', scheduledForMs: missedMs, triggerClass: '', bootId, nowMs }),
      status: 'skipped',
      deliveryStatus: 'not_requested',
      terminalAtMs: nowMs,
      errorKind: 'missed',
      reason:
        more && index === missed.length - 1
          ? `This time and all after it up to ${isoOf(scheduledForMs)} were missed; the last of them is caught up with.`
          : `Missed; the last time before ${isoOf(nowMs)} is caught up with.`,
    })),
  };
}

/** An occurrence beside the schedule. */
export function planManual(job: Job, { bootId, nowMs }: Pick<Claiming, 'bootId' | 'nowMs'>): ManualPlan {
  const occurrence = occurrenceOf(job, { trigger: 'manual', scheduledForMs: nowMs, bootId, nowMs });
  return { occurrence, work: workOf(job, occurrence, nowMs), maxOpen: maxOpenByHand };
}

function occurrenceOf(
  job: Job,
  how: {
    readonly trigger: CronTrigger;
    readonly scheduledForMs: number;
    readonly triggerClass?: string;
    readonly bootId: string;
    readonly nowMs: number;
  },
): OccurrenceRow {
  const { row, workKind } = job;
  const executionId = newId('ce');
  return {
    executionId,
    jobId: row.id,
    agentId: row.agentId,
    principalId: row.principalId,
    scheduledForMs: how.scheduledForMs,
    triggerClass: how.triggerClass ?? executionId,
    trigger: how.trigger,
    workKind,
    bootId: how.bootId,
    status: 'started',
    // Not provable before there is an end, where somebody is to be told.
    deliveryStatus: isDeliveryAsked(job) ? 'unknown' : 'not_requested',
    startedAtMs: how.nowMs,
    terminalAtMs: null,
    errorKind: null,
    reason: null,
    countersJson: null,
    effectsRefused: 0,
    cause: null,
  };
}

interface Collapsed {
  readonly scheduledForMs: number;
  readonly missed: readonly number[];
  /** There were more than `missed` holds. */
  readonly more: boolean;
}

/** The last time of a schedule from its due one on, and those before it. */
function collapse(schedule: CronSchedule, firstMs: number, untilMs: number, leastMs: number): Collapsed {
  const rows = schedule.kind === 'every' && schedule.everyMs < leastMs ? 1 : maxSkipped;
  const times = [firstMs, ...runsBetween(schedule, firstMs, untilMs, rows)];
  const last = times.pop() ?? firstMs;
  if (times.length < rows) return { scheduledForMs: last, missed: times, more: false };
  return { scheduledForMs: lastRun(schedule, firstMs, untilMs), missed: times, more: true };
}

/** The last run up to a time, after one that is known; found by halving, because schedules are only walked forward. */
function lastRun(schedule: CronSchedule, knownMs: number, untilMs: number): number {
  let found = knownMs;
  let [low, high] = [knownMs, untilMs];
  while (low < high) {
    const middle = low + Math.floor((high - low) / 2);
    const run = nextRun(schedule, middle);
    if (run === null || run > untilMs) high = middle;
    else [found, low] = [run, run];
  }
  return found;
}

const isoOf = (atMs: number) => new Date(atMs).toISOString();
