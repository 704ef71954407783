import * as z from 'zod';

const builtIn = (byDefault: boolean, does: string) =>
  z.strictObject({ enabled: z.boolean().default(byDefault).describe(`Adds the job to each agent: ${does}`) }).prefault({});

/** `scheduler.cron`: jobs that run by the clock. */
export const CronConfig = z.strictObject({
  enabled: z.boolean().default(true).describe('Runs jobs by the clock; when false, only those that are run by hand.'),
  maxRunsPerTick: z.int().min(1).max(100).default(3).describe('Jobs that are begun at one look at the clock.'),
  defaultTimezone: z.string().min(1).max(128).default('UTC').describe('Zone of schedules that name none.'),
  maxJobs: z.int().min(1).max(10_000).default(100).describe('Jobs of one agent; built-in ones and those that had their one run do not count.'),
  maxConsecutiveDependencyErrors: z
    .int()
    .min(0)
    .max(10_000)
    .default(5)
    .describe('Runs in a row that may fail for a provider before a job is paused; 0: any number. A job may say otherwise.'),
  staggerWindowMs: z
    .int()
    .min(0)
    .max(3_600_000)
    .default(0)
    .describe('Milliseconds over which recurring jobs are spread after their times, each by its id.'),
  minIntervalMs: z
    .int()
    .min(1)
    .max(86_400_000)
    .default(10_000)
    .describe('Least milliseconds between two runs of a job that a token without `admin` or `*`, or an agent, made.'),
  adminMinIntervalMs: z.int().min(1).max(86_400_000).default(1_000).describe('The same for jobs that other tokens made.'),
  builtIn: z
    .strictObject({
      memoryLifecycle: builtIn(true, 'each night, memories that are over or beyond the limits go. Makes no model call.'),
      memoryReview: builtIn(false, 'each night, conversations that changed are reviewed for what is worth remembering. Makes model calls.'),
      reflection: builtIn(false, 'each Sunday, a further review. Makes model calls.'),
    })
    .prefault({})
    .describe('Jobs that every agent has.'),
});
export type CronConfig = z.output<typeof CronConfig>;
