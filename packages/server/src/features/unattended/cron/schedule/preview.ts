import type { CronSchedule } from '@gatehouse/contract';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import type { AgentsApi } from '../../../agents/agents/api.ts';
import { checkSchedule, type InputDeps } from '../jobs/job-input.ts';
import { agentFor } from '../jobs/reach.ts';
import { runsBetween } from './schedule.ts';
import { averageTurnCost } from '../jobs/search-store.ts';
import { lastEpochMs } from './time-zone.ts';

const hourMs = 3_600_000;
/** Period over which the runs of an expression are averaged, and the maximum number counted. */
const countedMs = 24 * hourMs;
const maxCounted = 10_000;

export interface PreviewDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly input: InputDeps;
  readonly agents: Pick<AgentsApi, 'find' | 'defaultId' | 'usable'>;
}

/** Implements `cron.preview`, an extension of the specification: the next times of a schedule and their estimated cost. */
export function createPreview({ db, clock, input, agents }: PreviewDeps): HandlersOf<'cron.preview'> {
  return {
    'cron.preview': async ({ schedule: request, count, fromMs = clock.now(), agentId: wanted }, call) => {
      const schedule = checkSchedule(request, fromMs, input);
      const runsPerHour = runRate(schedule, fromMs);
      const agentId = wanted === undefined ? undefined : agentFor(agents, wanted, call);
      const turnUsd = agentId === undefined ? null : await db.read(averageTurnCost, { agentId });
      return {
        schedule,
        timesMs: runsBetween(schedule, fromMs, lastEpochMs, count),
        runsPerHour,
        costPerHourUsd: turnUsd === null ? null : turnUsd * runsPerHour,
      };
    },
  };
}

/** Returns the runs per hour, averaged over the day after `fromMs`. */
function runRate(schedule: CronSchedule, fromMs: number): number {
  if (schedule.kind === 'every') return hourMs / schedule.everyMs;
  if (schedule.kind === 'at') return 0;
  const times = runsBetween(schedule, fromMs, fromMs + countedMs, maxCounted);
  const spanMs = times.length < maxCounted ? countedMs : (times.at(-1) ?? fromMs) - fromMs;
  return (times.length * hourMs) / spanMs;
}
