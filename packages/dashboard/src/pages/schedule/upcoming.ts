import type { Client } from '@gatehouse/client';
import type { Job } from './job-draft.ts';
import { nextRunOf } from './words.ts';

/** The coming runs of a job within a window. */
export interface JobRuns {
  readonly job: Job;
  readonly times: readonly number[];
  /** From here on there are more than are drawn one by one; absent when all are in `times`. */
  readonly moreFromMs?: number;
}

/** Runs of a job that are drawn one by one. */
export const maxTimes = 51;
/** Jobs that are drawn: those that run soonest. */
export const maxJobs = 30;

/** What runs from `nowMs` until `untilMs`, the soonest first. Times of cron expressions are those that the gateway counts. */
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

/** The next run as it is stored stands before those that are counted: it may be overdue. */
function drawn(job: Job, nextMs: number, later: readonly number[], nowMs: number, untilMs: number): JobRuns {
  const times = [Math.max(nextMs, nowMs), ...later.filter((atMs) => atMs > nowMs && atMs <= untilMs)];
  const last = later.at(-1);
  const more = later.length >= maxTimes - 1 && last !== undefined && last < untilMs;
  return { job, times, ...(more && { moreFromMs: last }) };
}

function countUp(fromMs: number, everyMs: number): number[] {
  return Array.from({ length: maxTimes - 1 }, (_, at) => fromMs + everyMs * (at + 1));
}
