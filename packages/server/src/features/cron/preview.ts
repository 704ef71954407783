import type { Clock } from '../../kernel/clock.ts';
import type { HandlersOf } from '../../kernel/handlers.ts';
import { checkSchedule, type InputDeps } from './job-input.ts';
import { runsBetween } from './schedule.ts';
import { lastEpochMs } from './time-zone.ts';

/** `cron.preview`, beyond the specification: the next times of a schedule before a job has it. */
export function createPreview({ clock, input }: { readonly clock: Clock; readonly input: InputDeps }): HandlersOf<'cron.preview'> {
  return {
    'cron.preview': async ({ schedule: request, count, fromMs = clock.now() }) => {
      const schedule = checkSchedule(request, fromMs, input);
      return { schedule, timesMs: runsBetween(schedule, fromMs, lastEpochMs, count) };
    },
  };
}
