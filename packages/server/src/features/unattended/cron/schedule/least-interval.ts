import type { CronSchedule } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import type { CronConfig } from '../config.ts';
import { runsBetween } from './schedule.ts';
import { lastEpochMs } from './time-zone.ts';

/** Number of times checked of an expression with seconds, which repeats every minute. */
const checkedTimes = 61;

/** Returns the minimum interval of jobs, by their creator (decisions §12). */
export function leastIntervalMs({ minIntervalMs, adminMinIntervalMs }: CronConfig, isAdmin: boolean): number {
  return isAdmin ? adminMinIntervalMs : minIntervalMs;
}

/** Returns the shortest time between two runs of a schedule; undefined for one that runs once. */
export function intervalOf(schedule: CronSchedule, nowMs: number): number | undefined {
  if (schedule.kind === 'at') return undefined;
  if (schedule.kind === 'every') return schedule.everyMs;
  // Without seconds an expression names whole minutes.
  if (schedule.expr.trim().split(/\s+/).length < 6) return 60_000;
  const times = runsBetween(schedule, nowMs, lastEpochMs, checkedTimes);
  return times.reduce<number | undefined>((least, atMs, index) => {
    const gap = atMs - (times[index - 1] ?? Number.NEGATIVE_INFINITY);
    return least === undefined || gap < least ? gap : least;
  }, undefined);
}

/** Rejects a schedule that runs more often than the caller is allowed. */
export function checkInterval(
  schedule: CronSchedule,
  isAdmin: boolean,
  { config, nowMs }: { readonly config: CronConfig; readonly nowMs: number },
): void {
  const leastMs = leastIntervalMs(config, isAdmin);
  const intervalMs = intervalOf(schedule, nowMs);
  if (intervalMs === undefined || intervalMs >= leastMs) return;
  const { minIntervalMs, adminMinIntervalMs } = config;
  throw new AppError(
    'denied',
    `A job may run every ${leastMs} ms at most, and this schedule says every ${intervalMs} ms (scheduler.cron.minIntervalMs: ${minIntervalMs}; with scope admin adminMinIntervalMs: ${adminMinIntervalMs})`,
    { param: schedule.kind === 'every' ? 'schedule.everyMs' : 'schedule.expr' },
  );
}
