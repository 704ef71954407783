import type { CronSchedule, CronTrigger } from '@gatehouse/contract';
import { hash } from 'node:crypto';
import { newId } from '../../../../kernel/ids.ts';
import type { NewWork } from '../../durable/api.ts';
import { isDeliveryAsked } from './finish.ts';
import type { JobAdvance, OccurrenceRow } from './occurrence-store.ts';
import type { Job } from '../jobs/job.ts';
import { nextRun, runsBetween } from '../schedule/schedule.ts';
import { workOf } from './work.ts';

/** Input of `claimOccurrence`. */
export interface ClaimPlan {
  readonly occurrence: OccurrenceRow;
  readonly work: NewWork;
  readonly advance: JobAdvance;
  readonly skipped: readonly OccurrenceRow[];
}

/** Input of `claimManually`. */
export interface ManualPlan {
  readonly occurrence: OccurrenceRow;
  readonly work: NewWork;
  /** Maximum concurrent occurrences of the job. */
  readonly maxOpen: number;
}

/** Input of `claimBackfill`. */
export type BackfillPlan = Pick<ManualPlan, 'occurrence' | 'work'>;

export interface Claiming {
  readonly bootId: string;
  readonly nowMs: number;
  /** Start time of this process, by the current system clock. */
  readonly bootedAtMs: number;
  /** Minimum interval between starts, whatever the schedule says. */
  readonly leastMs: number;
  /** Window over which jobs are spread. */
  readonly staggerWindowMs: number;
}

/** Delay after which an occurrence counts as a catch-up. */
export const lateMs = 60_000;
/** Maximum records of missed times per claim; the last one covers the rest. */
const maxSkipped = 1000;
/** Maximum concurrent runs of one job: they queue in its conversation and hold slots that other jobs need. */
export const maxOpenByHand = 4;

/** Returns when a job scheduled for `runMs` may start; recurring jobs are spread over the window by id. */
export function dueTime(job: { readonly id: string; readonly schedule: CronSchedule }, runMs: number | null, windowMs: number): number | null {
  if (runMs === null || job.schedule.kind === 'at' || windowMs <= 0) return runMs;
  return runMs + (Number.parseInt(hash('sha256', job.id).slice(0, 8), 16) % windowMs);
}

/**
 * Plans the claim of a due job. Missed times collapse into one run for the last of them; each of the others gets a record
 * that says so.
 */
export function planClaim(job: Job, { bootId, nowMs, bootedAtMs, leastMs, staggerWindowMs }: Claiming): ClaimPlan {
  const { row, schedule } = job;
  const firstMs = row.nextRunAtMs ?? nowMs;
  // With a window, the due run may have been scheduled a while ago; later times are not due yet.
  const untilMs = Math.max(firstMs, nowMs - ((row.dueAtMs ?? firstMs) - firstMs));
  const { scheduledForMs, missed, more } = collapse(schedule, firstMs, untilMs, leastMs);
  const nextRunAtMs = nextRun(schedule, Math.max(nowMs, scheduledForMs));
  const dueAtMs = dueTime({ id: row.id, schedule }, nextRunAtMs, staggerWindowMs);
  const wasDueMs = Math.max(scheduledForMs, row.dueAtMs ?? 0);
  // Missed while the process was down or overloaded; jobs added since the start missed nothing.
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
          ? `This time and all after it up to ${isoOf(scheduledForMs)} were missed; the last of them runs now.`
          : `Missed; the last time before ${isoOf(nowMs)} runs instead.`,
    })),
  };
}

/** Plans an occurrence outside the schedule. */
export function planManual(job: Job, { bootId, nowMs }: Pick<Claiming, 'bootId' | 'nowMs'>): ManualPlan {
  const occurrence = occurrenceOf(job, { trigger: 'manual', scheduledForMs: nowMs, bootId, nowMs });
  return { occurrence, work: workOf(job, occurrence, nowMs), maxOpen: maxOpenByHand };
}

/** Plans the run of a time that was missed, on request. */
export function planBackfill(job: Job, scheduledForMs: number, { bootId, nowMs }: Pick<Claiming, 'bootId' | 'nowMs'>): BackfillPlan {
  const occurrence = occurrenceOf(job, { trigger: 'catchup', scheduledForMs, triggerClass: '', bootId, nowMs });
  return { occurrence, work: workOf(job, occurrence, nowMs, true) };
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
    // With a recipient, delivery is unknown until the occurrence ends.
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
  /** True when more times were missed than `missed` holds. */
  readonly more: boolean;
}

/** Returns the last due time of a schedule and the missed ones before it. */
function collapse(schedule: CronSchedule, firstMs: number, untilMs: number, leastMs: number): Collapsed {
  const rows = schedule.kind === 'every' && schedule.everyMs < leastMs ? 1 : maxSkipped;
  const times = [firstMs, ...runsBetween(schedule, firstMs, untilMs, rows)];
  const last = times.pop() ?? firstMs;
  if (times.length < rows) return { scheduledForMs: last, missed: times, more: false };
  return { scheduledForMs: lastRun(schedule, firstMs, untilMs), missed: times, more: true };
}

/** Returns the last run up to a time, after a known one. Bisects, because schedules can only be walked forward. */
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
