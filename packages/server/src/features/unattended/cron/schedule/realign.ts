import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Log } from '../../../../kernel/log.ts';
import { dueTime } from '../occurrences/claim.ts';
import { parseJob } from '../jobs/job.ts';
import { realignJobs, type Realigned } from './realign-store.ts';
import { nextRun } from './schedule.ts';
import { jobsAfter } from '../jobs/search-store.ts';
import type { JobRow } from '../store.ts';

const pageOfJobs = 100;

export interface RealignDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly staggerWindowMs: number;
}

/**
 * Reschedules recurring jobs whose next run is further ahead than their schedule allows, as after the clock was wrong: they
 * would not run until then. No time runs twice, because each has one record.
 */
export async function realign({ db, clock, log, staggerWindowMs }: RealignDeps): Promise<void> {
  let moved = 0;
  for (let rows = await db.read(jobsAfter, { afterId: '', limit: pageOfJobs }); rows.length > 0;) {
    const nowMs = clock.now();
    const changes = rows.flatMap((row) => realigned(row, nowMs, staggerWindowMs) ?? []);
    if (changes.length > 0) moved += await db.write(realignJobs, { changes });
    const last = rows.at(-1);
    rows = last === undefined || rows.length < pageOfJobs ? [] : await db.read(jobsAfter, { afterId: last.id, limit: pageOfJobs });
  }
  if (moved > 0) log.warn({ jobs: moved }, 'Rescheduled jobs whose next run was further ahead than their schedule allows: the clock was wrong');
}

function realigned(row: JobRow, nowMs: number, staggerWindowMs: number): Realigned | undefined {
  const schedule = parseJob(row)?.schedule;
  if (row.nextRunAtMs === null || schedule === undefined || schedule.kind === 'at') return undefined;
  const nextRunAtMs = nextRun(schedule, nowMs);
  if (nextRunAtMs === null || row.nextRunAtMs <= nextRunAtMs) return undefined;
  return {
    id: row.id,
    revision: row.revision,
    nextRunAtMs,
    dueAtMs: dueTime({ id: row.id, schedule }, nextRunAtMs, staggerWindowMs),
    highWaterMs: Math.min(row.highWaterMs, nowMs),
  };
}
