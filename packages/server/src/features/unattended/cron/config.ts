import { once } from '@gatehouse/contract';
import * as z from 'zod';

const builtIn = (byDefault: boolean, does: string) =>
  z.strictObject({ enabled: z.boolean().default(byDefault).describe(`Adds a job to each agent that ${does}`) }).prefault({});

/** `scheduler.cron`: jobs that run on a schedule. */
export const CronConfig = once(() =>
  z.strictObject({
    enabled: z.boolean().default(true).describe('Runs jobs on their schedules; when false, jobs run only when started manually.'),
    maxRunsPerTick: z.int().min(1).max(100).default(3).describe('Maximum number of jobs started per scheduler tick.'),
    defaultTimezone: z.string().min(1).max(128).default('UTC').meta({ apply: 'restart' }).describe('Time zone of schedules that do not name one.'),
    maxJobs: z.int().min(1).max(10_000).default(100).describe('Maximum jobs per agent; built-in jobs and finished one-shot jobs do not count.'),
    maxConsecutiveDependencyErrors: z
      .int()
      .min(0)
      .max(10_000)
      .default(5)
      .describe('Consecutive provider failures before a job is paused; 0: never. A job may override it.'),
    staggerWindowMs: z
      .int()
      .min(0)
      .max(3_600_000)
      .default(0)
      .meta({ apply: 'restart' })
      .describe('Window in milliseconds over which recurring jobs are spread after their scheduled times, by job id.'),
    minIntervalMs: z
      .int()
      .min(1)
      .max(86_400_000)
      .default(10_000)
      .describe('Minimum milliseconds between two runs of a job created by an agent or by a token without `admin` or `*`.'),
    adminMinIntervalMs: z.int().min(1).max(86_400_000).default(1_000).describe('The same for jobs created by other tokens.'),
    builtIn: z
      .strictObject({
        memoryLifecycle: builtIn(true, 'deletes expired memories and those over the limits each night. Makes no model call.'),
        memoryReview: builtIn(false, 'reviews changed conversations each night for facts worth remembering. Makes model calls.'),
        reflection: builtIn(false, 'runs a further review each Sunday. Makes model calls.'),
      })
      .prefault({})
      .describe('Jobs that every agent has.'),
  }),
);
export type CronConfig = z.output<ReturnType<typeof CronConfig>>;
