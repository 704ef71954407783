import type { Client } from '@gatehouse/client';
import type { Job } from './job-draft.ts';
import { nextRunOf } from './labels.ts';

/** The upcoming runs of a job within a window. */
export interface JobRuns {
  readonly job: Job;
  readonly times: readonly number[];
  /** Time from which on there are more runs than `times` lists; absent when it lists all. */
  readonly moreFromMs?: number;
}

/** Runs of a job that are drawn individually. */
export const maxTimes = 51;
/** Number of jobs that are drawn: those that run soonest. */
export const maxJobs = 30;

/** Returns the runs from `nowMs` until `untilMs`, soonest first. The gateway computes the times of cron expressions. */
export async function upcomingRuns(
  client: Pick<Client, 'batch'>,
  jobs: readonly Job[],
  nowMs: number,
  untilMs: number,
  signal: AbortSignal,
): Promise<readonly JobRuns[]> {
  const soonest = jobs
    .flatMap((job) => {
      const nextMs = nextRunOf(job);
      return nextMs !== null && nextMs <= untilMs ? [{ job, nextMs }] : [];
    })
    .toSorted((a, b) => a.nextMs - b.nextMs)
    .slice(0, maxJobs);
  const schedules = soonest.flatMap(({ job: { schedule }, nextMs }) => (schedule.kind === 'cron' ? [{ schedule, fromMs: nextMs }] : []));
  const outcomes =
    schedules.length === 0
      ? []
      : await client.batch(
          schedules.map(({ schedule, fromMs }) => ({ method: 'cron.preview', params: { schedule, fromMs, count: maxTimes - 1 } }) as const),
          { signal },
        );
  const counted = outcomes.values();
  return soonest.map(({ job, nextMs }) => {
    if (job.schedule.kind === 'every') return drawn(job, nextMs, countUp(nextMs, job.schedule.everyMs), nowMs, untilMs);
    const outcome = job.schedule.kind === 'cron' ? counted.next().value : undefined;
    return drawn(job, nextMs, outcome?.ok === true ? outcome.result.timesMs : [], nowMs, untilMs);
  });
}

/** Puts the stored next run before the computed ones: it may be overdue. */
function drawn(job: Job, nextMs: number, later: readonly number[], nowMs: number, untilMs: number): JobRuns {
  const times = [Math.max(nextMs, nowMs), ...later.filter((atMs) => atMs > nowMs && atMs <= untilMs)];
  const last = later.at(-1);
  const more = later.length >= maxTimes - 1 && last !== undefined && last < untilMs;
  return { job, times, ...(more && { moreFromMs: last }) };
}

function countUp(fromMs: number, everyMs: number): number[] {
  return Array.from({ length: maxTimes - 1 }, (_, at) => fromMs + everyMs * (at + 1));
}
