import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import {
  CronCounter,
  cronDeliveryStates,
  CronExecutionId,
  CronGateVerdict,
  CronJobId,
  CronJobName,
  CronJobPayload,
  CronLifecycle,
  cronLimits,
  CronPayload,
  cronPolicyShape,
  cronRunIdentity,
  cronRunStates,
  CronSchedule,
  CronScheduleRequest,
  NewCronJobName,
} from '../shared/cron.ts';
import { AgentId } from '../shared/session.ts';
import { EpochMs } from '../shared/turn.ts';
import { EffectsRefused, FailureCause, WorkWaiting } from '../shared/waiting.ts';

/** A job as listed by `cron.list` (json-rpc.md §2.3). */
export const CronJob = once(() =>
  z
    .strictObject({
      id: CronJobId(),
      name: CronJobName(),
      agentId: AgentId,
      source: z.enum(['authored', 'built_in']),
      schedule: CronSchedule(),
      leastIntervalMs: z
        .int()
        .min(1)
        .optional()
        .describe('Effective interval of the job, set when its schedule asks for a shorter one than `scheduler.cron.minIntervalMs` allows.'),
      lifecycle: CronLifecycle(),
      payload: CronJobPayload(),
      ...cronPolicyShape(),
      lastRun: CronRun().optional().describe('Its newest run; in `cron.list`, for a job that has run.'),
    })
    .meta({ id: 'CronJob' }),
);
export type CronJob = z.output<ReturnType<typeof CronJob>>;

/** One occurrence as listed by `cron.runs` (json-rpc.md §2.3). */
export const CronRun = once(() =>
  z
    .strictObject({
      ...cronRunIdentity(),
      terminalAtMs: EpochMs.optional(),
      durationMs: z.int().min(0).optional(),
      status: z.enum(cronRunStates),
      deliveryStatus: z.enum(cronDeliveryStates),
      deliveryPending: z
        .literal(true)
        .optional()
        .describe('The delivery to a chat is not over: until then `deliveryStatus` is `unknown`. It follows the outbox of the channel, also later.'),
      errorKind: z.string().max(64).optional(),
      reason: z.string().max(1000).optional().describe('One sentence that says why it was skipped, failed or ended otherwise.'),
      wakeGate: CronGateVerdict().optional().describe('Decision of the wake gate. An extension of the specification.'),
      counters: z.array(CronCounter()).max(32).optional().describe('Counters of an ended `internal_action`.'),
      cause: FailureCause().optional(),
      waiting: WorkWaiting().optional().describe('Set while the run waits; a run waiting for an approval has the status `dispatched`.'),
      effectsRefused: EffectsRefused().optional(),
    })
    .meta({ id: 'CronRun' }),
);
export type CronRun = z.output<ReturnType<typeof CronRun>>;

const agentParam = once(() => ({ agentId: AgentId.optional().describe('The default agent when absent.') }));
const JobNameOrId = once(() => CronJobName().describe('Name of a job, or its id when several jobs share the name.'));

const named = <T extends { readonly jobId?: unknown; readonly jobName?: unknown }>({ jobId, jobName }: T) =>
  jobId !== undefined || jobName !== undefined;
const namedMessage = { message: 'expected jobId or jobName', path: ['jobName'] };

/** Lower-case SHA-256 in hex, or null when the part does not exist. */
const Digest = once(() =>
  z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'expected a lower-case SHA-256, 64 hex digits')
    .nullable(),
);
const Digests = once(() => z.strictObject({ store: Digest().optional(), ledger: Digest().optional() }).meta({ id: 'CronDigests' }));
const target = once(() => z.enum(['store', 'ledger', 'all']));
const Authority = once(() => z.strictObject({ exists: z.boolean(), bytes: z.int().min(0), digest: Digest() }));

/** The parts of each target. */
export const cronTargets: Readonly<Record<z.output<ReturnType<typeof target>>, readonly ('store' | 'ledger')[]>> = {
  store: ['store'],
  ledger: ['ledger'],
  all: ['store', 'ledger'],
};

const Intent = once(() =>
  z.discriminatedUnion('status', [
    z.strictObject({ status: z.literal('none') }),
    z.strictObject({
      status: z.literal('pending'),
      operationId: z.string(),
      target: target(),
      phase: z.enum(['prepared', 'archives_recorded', 'replacements_recorded', 'completion_recorded']),
      digest: z.string(),
    }),
    z.strictObject({ status: z.literal('invalid'), digest: z.string() }),
  ]),
);

const jobId = 'cj_0198c5f2-6f0a-7c3e-9a52-3d1b8c7e4f10';
const executionId = 'ce_0198c5f3-1111-7c3e-9a52-3d1b8c7e4f10';
const digest = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

/** Scheduled jobs (json-rpc.md §4 cron). Non-admin tokens see and change only their own jobs. */
export const cron = {
  'cron.add': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Adds a job to an agent, with its action and schedule.',
    description:
      'Names are unique among the jobs of the caller with that agent. `wakeGate`, `sessionPolicy`, `toolPolicy` and `cacheRetention` belong to an `agent_turn`; `continuationMode: origin_history` needs a `deliveryTarget`. Its `conversationRef` must be the digest of its `conversationScope`; `session.list` shows both. A `delivery` without a target goes to the inbox of the job owner. `destinationEndpoint` is a chat of a channel, or the built-in channel: then `channelType` and `channelInstanceId` are `gateway`, `conversationKind` is `direct`, and `conversationId` is `inbox` or the reference of the conversation, to which the text is then added too.',
    params: () =>
      z.strictObject({
        name: NewCronJobName(),
        ...agentParam(),
        schedule: CronScheduleRequest(),
        payload: CronPayload(),
        ...cronPolicyShape(),
      }),
    result: () => z.strictObject({ jobId: CronJobId(), name: CronJobName(), schedule: CronSchedule() }),
    errors: ['not_found', 'conflict', 'precondition_failed', 'denied'],
    examples: [
      {
        params: {
          name: 'morning report',
          agentId: 'default',
          schedule: { kind: 'cron', expr: '0 8 * * 1-5', tz: 'Europe/Berlin' },
          payload: { kind: 'agent_turn', message: 'What is due today?', timeoutSeconds: 300 },
          sessionPolicy: { strategy: 'rolling', maxHistoryTurns: 3 },
        },
        result: { jobId, name: 'morning report', schedule: { kind: 'cron', expr: '0 8 * * 1-5', tz: 'Europe/Berlin' } },
      },
    ],
    since: '0.1.0',
  }),
  'cron.list': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Lists jobs of one agent, or of all agents when none is named.',
    description: 'Ordered by agent and name, at most 1,000 per response; `total` is the number of all jobs.',
    params: () =>
      z.strictObject({
        agentId: AgentId.optional(),
        offset: z.int().min(0).default(0),
        limit: z.int().min(1).max(1000).default(1000),
      }),
    result: () => z.strictObject({ jobs: z.array(CronJob()), total: z.int().min(0) }),
    errors: ['not_found'],
    examples: [
      {
        params: { agentId: 'default' },
        result: {
          jobs: [
            {
              id: jobId,
              name: 'morning report',
              agentId: 'default',
              source: 'authored',
              schedule: { kind: 'cron', expr: '0 8 * * 1-5', tz: 'Europe/Berlin' },
              lifecycle: { state: 'scheduled', nextRunAtMs: 1_790_000_000_000, consecutiveDependencyErrors: 0 },
              payload: { kind: 'agent_turn', message: 'What is due today?', timeoutSeconds: 300 },
              sessionPolicy: { strategy: 'rolling', maxHistoryTurns: 3 },
            },
          ],
          total: 1,
        },
      },
    ],
    since: '0.1.0',
  }),
  'cron.update': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Changes, pauses or resumes a job.',
    description:
      'Omitted fields keep their values, except that `wakeGate`, `sessionPolicy`, `toolPolicy` and `cacheRetention` are dropped when the payload is no longer an `agent_turn`; null removes `deliveryTarget`, `wakeGate`, `cacheRetention`, `toolPolicy` or `maxConsecutiveDependencyErrors`. `paused: false` clears the errors and computes the next run from now. A running occurrence is not affected. Built-in jobs and finished one-shot jobs cannot be changed.',
    params: () =>
      z
        .strictObject({
          jobId: CronJobId().optional(),
          jobName: CronJobName().optional(),
          name: NewCronJobName().optional(),
          schedule: CronScheduleRequest().optional(),
          payload: CronPayload().optional(),
          sessionPolicy: cronPolicyShape().sessionPolicy,
          continuationMode: cronPolicyShape().continuationMode,
          deliveryTarget: cronPolicyShape().deliveryTarget.nullable(),
          wakeGate: cronPolicyShape().wakeGate.nullable(),
          cacheRetention: cronPolicyShape().cacheRetention.nullable(),
          toolPolicy: cronPolicyShape().toolPolicy.nullable(),
          maxConsecutiveDependencyErrors: cronPolicyShape().maxConsecutiveDependencyErrors.nullable(),
          paused: z.boolean().optional(),
        })
        .refine(named, namedMessage),
    result: () => z.strictObject({ jobName: CronJobName(), updated: z.literal(true) }),
    errors: ['not_found', 'conflict', 'precondition_failed', 'denied'],
    examples: [{ params: { jobName: 'morning report', paused: true }, result: { jobName: 'morning report', updated: true } }],
    since: '0.1.0',
  }),
  'cron.remove': method({
    scope: 'rpc',
    risk: 'destructive',
    summary: 'Removes a job with the records of its runs.',
    description: 'Rejected while an occurrence is running, and for built-in jobs.',
    params: () => z.strictObject({ jobId: CronJobId().optional(), jobName: CronJobName().optional() }).refine(named, namedMessage),
    result: () => z.strictObject({ jobName: CronJobName(), removed: z.literal(true) }),
    errors: ['not_found', 'precondition_failed'],
    examples: [{ params: { jobName: 'morning report' }, result: { jobName: 'morning report', removed: true } }],
    since: '0.1.0',
  }),
  'cron.status': method({
    scope: 'rpc',
    risk: 'read',
    summary: "Returns the state of an agent's schedule, with the digests that `cron.reset` compares.",
    description:
      'Available in every state. Non-admin tokens see only their own counts, sizes and digests; `cron.reset` compares the global ones shown to admins.',
    params: () => z.strictObject(agentParam()),
    result: () =>
      z.strictObject({
        state: z.enum(['initializing', 'disabled', 'ready', 'active', 'maintenance', 'failed']),
        configuredEnabled: z.boolean(),
        running: z.boolean(),
        strictAuthoritiesValid: z.boolean(),
        ownershipReconciled: z.boolean(),
        jobCount: z.int().min(0),
        activeClaimCount: z.int().min(0),
        resolvedAgentId: AgentId,
        store: Authority(),
        ledger: Authority(),
        intent: Intent(),
        lastError: z.strictObject({ code: z.string(), errorKind: z.string() }).optional(),
      }),
    errors: ['not_found'],
    examples: [
      {
        params: {},
        result: {
          state: 'active',
          configuredEnabled: true,
          running: true,
          strictAuthoritiesValid: true,
          ownershipReconciled: true,
          jobCount: 1,
          activeClaimCount: 0,
          resolvedAgentId: 'default',
          store: { exists: true, bytes: 812, digest },
          ledger: { exists: true, bytes: 0, digest },
          intent: { status: 'none' },
        },
      },
    ],
    since: '0.1.0',
  }),
  'cron.runs': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Lists the runs of a job, newest first.',
    params: () =>
      z
        .strictObject({
          jobId: CronJobId().optional(),
          jobName: JobNameOrId().optional(),
          limit: z.int().min(1).max(cronLimits.runs).default(20),
          agentId: AgentId.optional(),
        })
        .refine(named, namedMessage),
    result: () => z.strictObject({ runs: z.array(CronRun()) }),
    errors: ['not_found', 'precondition_failed'],
    examples: [
      {
        params: { jobName: 'morning report', limit: 1 },
        result: {
          runs: [
            {
              executionId,
              jobId,
              agentId: 'default',
              scheduledForMs: 1_790_000_000_000,
              trigger: 'scheduled',
              workKind: 'agent_turn',
              rootRunId: `root-cron-${executionId}`,
              startedAtMs: 1_790_000_000_004,
              terminalAtMs: 1_790_000_002_004,
              durationMs: 2000,
              status: 'completed',
              deliveryStatus: 'not_requested',
            },
          ],
        },
      },
    ],
    since: '0.1.0',
  }),
  'cron.run': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Runs a job now, or all overdue jobs.',
    description:
      'Mode `force` creates a separate occurrence: the next run and the error count do not change. Mode `due` starts the jobs that the scheduler would start, once per job, ordered by time, at most 100 per call. The call does not wait for the runs.',
    params: () =>
      z
        .strictObject({
          jobId: CronJobId().optional(),
          jobName: JobNameOrId().optional(),
          mode: z.enum(['force', 'due']).default('force'),
          agentId: AgentId.optional(),
        })
        .refine((given) => given.mode !== 'force' || named(given), namedMessage)
        .refine((given) => given.mode !== 'due' || !named(given), { message: 'not allowed with mode due', path: ['jobName'] }),
    result: () =>
      z.discriminatedUnion('mode', [
        z.strictObject({
          triggered: z.boolean(),
          mode: z.literal('force'),
          jobName: CronJobName(),
          resolvedAgentId: AgentId,
          executionId: CronExecutionId(),
        }),
        z.strictObject({ triggered: z.boolean(), mode: z.literal('due'), resolvedAgentId: AgentId, executionIds: z.array(CronExecutionId()) }),
      ]),
    errors: ['not_found', 'precondition_failed', 'unavailable'],
    examples: [
      {
        params: { jobName: 'morning report' },
        result: { triggered: true, mode: 'force', jobName: 'morning report', resolvedAgentId: 'default', executionId },
      },
    ],
    since: '0.1.0',
  }),
  'cron.backfill': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Runs the missed times of a job, or the times of a range that have not run.',
    description:
      'An extension of the specification. Without a range it runs the times that `cron.runs` lists as missed, or as skipped because the agent was suspended; with one, every time of the present schedule in it, for a cron expression also before the job was added. Jobs that run once and built-in jobs have no such times. A time that has run, or is queued already, is never run again; nor is one so old that its record may have been removed. The times run from the oldest to the newest, one at a time for each job, as runs with the trigger `catchup`; the message of an `agent_turn` ends with the time that it is for. They wait while the agent is suspended or the scheduler is off, and resume after a restart. When one ends because a budget is exhausted, or the job is removed, the times after it are dropped.',
    params: () =>
      z
        .strictObject({
          jobId: CronJobId().optional(),
          jobName: JobNameOrId().optional(),
          agentId: AgentId.optional(),
          fromMs: EpochMs.optional().describe('Start of the range, inclusive; the missed times when absent.'),
          toMs: EpochMs.optional().describe('End of the range, inclusive; now when absent or later.'),
          limit: z.int().min(1).max(cronLimits.backfill).default(20).describe('Maximum number of times; the oldest ones are taken.'),
          dryRun: z.boolean().default(false).describe('Returns the times without running them.'),
        })
        .refine(named, namedMessage)
        .refine(({ fromMs, toMs }) => toMs === undefined || (fromMs !== undefined && fromMs <= toMs), {
          message: 'expected a time that is not before fromMs, along with it',
          path: ['toMs'],
        }),
    result: () =>
      z.strictObject({
        jobName: CronJobName(),
        resolvedAgentId: AgentId,
        dryRun: z.boolean(),
        timesMs: z.array(EpochMs).max(cronLimits.backfill).describe('The times that are queued, or would be; ascending.'),
        more: z.boolean().describe('Further times are beyond the limit.'),
        costUsd: z
          .number()
          .min(0)
          .nullable()
          .describe('US dollars for all of them, estimated from the average cost of the last turns of the agent; null without a known price.'),
      }),
    errors: ['not_found', 'precondition_failed', 'unavailable', 'denied'],
    examples: [
      {
        params: { jobName: 'morning report', fromMs: 1_790_000_000_000, toMs: 1_790_172_800_000, dryRun: true },
        result: {
          jobName: 'morning report',
          resolvedAgentId: 'default',
          dryRun: true,
          timesMs: [1_790_056_800_000, 1_790_143_200_000],
          more: false,
          costUsd: 0.004,
        },
      },
    ],
    since: '0.1.0',
  }),
  'cron.preview': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns the next times of a schedule, without adding a job.',
    description:
      'An extension of the specification. Skipped and repeated wall times are handled as for jobs: an expression with fixed times (no `*` and no step in seconds, minutes and hours) runs once for each, in a fold at the first pass and in a gap at its end; any other follows real time. Returns fewer times than requested when there are no more.',
    params: () =>
      z.strictObject({
        schedule: CronScheduleRequest(),
        count: z.int().min(1).max(50).default(10),
        fromMs: EpochMs.max(8_640_000_000_000_000).optional().describe('Returns times after this one; now when absent.'),
        agentId: AgentId.optional().describe('Estimates the cost of an `agent_turn` of this agent.'),
      }),
    result: () =>
      z.strictObject({
        schedule: CronSchedule(),
        timesMs: z.array(EpochMs).max(50),
        runsPerHour: z.number().min(0).describe('Average over a day; 0 for a single run.'),
        costPerHourUsd: z
          .number()
          .min(0)
          .nullable()
          .describe('US dollars, estimated from the average cost of the last turns of the agent; null without `agentId` or a known price.'),
      }),
    errors: ['not_found'],
    examples: [
      {
        params: { schedule: { kind: 'cron', expr: '30 2 * * *', tz: 'Europe/Berlin' }, count: 2, fromMs: 1_774_659_600_000 },
        result: {
          schedule: { kind: 'cron', expr: '30 2 * * *', tz: 'Europe/Berlin' },
          timesMs: [1_774_661_400_000, 1_774_746_000_000],
          runsPerHour: 1 / 24,
          costPerHourUsd: null,
        },
      },
    ],
    since: '0.1.0',
  }),
  'cron.reset': method({
    scope: 'admin',
    risk: 'destructive',
    summary: "Deletes an agent's jobs, the records of their runs, or both, if they have not changed since the caller read them.",
    description:
      'Compare-and-set: `expectedDigests` contains the digests from `cron.status` of the parts to delete, `store` and `ledger` depending on the target. Waits up to 30 seconds for running jobs. The deleted data is kept in an archive in the database. After a crash, the next start resumes the reset from its recorded phase.',
    params: () =>
      z
        .strictObject({ target: target(), expectedDigests: Digests(), confirmed: z.literal(true), ...agentParam() })
        .refine(({ target: of, expectedDigests }) => cronTargets[of].every((part) => expectedDigests[part] !== undefined), {
          message: 'expected a digest, or null, for each part of the target',
          path: ['expectedDigests'],
        })
        .refine(({ target: of, expectedDigests }) => Object.keys(expectedDigests).length === cronTargets[of].length, {
          message: 'expected only digests of the target',
          path: ['expectedDigests'],
        }),
    result: () =>
      z.strictObject({
        operationId: z.string(),
        target: target(),
        resolvedAgentId: AgentId,
        beforeDigests: Digests(),
        afterDigests: Digests(),
        state: z.enum(['disabled', 'ready', 'active']),
        reactivated: z.boolean(),
      }),
    errors: ['not_found', 'conflict', 'precondition_failed'],
    examples: [
      {
        params: { target: 'ledger', expectedDigests: { ledger: digest }, confirmed: true },
        result: {
          operationId: 'co_0198c5f3-2222-7c3e-9a52-3d1b8c7e4f10',
          target: 'ledger',
          resolvedAgentId: 'default',
          beforeDigests: { ledger: digest },
          afterDigests: { ledger: digest },
          state: 'active',
          reactivated: true,
        },
      },
    ],
    since: '0.1.0',
  }),
};
