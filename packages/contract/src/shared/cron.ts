import * as z from 'zod';
import { once } from '../once.ts';
import { ToolPattern } from './agent-config.ts';
import { AgentId, ChannelEndpoint, ConversationRef, ConversationScope } from './session.ts';
import { EpochMs } from './turn.ts';

const WellFormed = once(() => z.string().refine((text) => text.isWellFormed(), 'expected well-formed Unicode'));
const SafePositive = once(() => z.int().min(1));
const nameLength = 200;

/** Limits of the fields of a job (json-rpc.md §2.3, §8). */
export const cronLimits = {
  name: nameLength,
  text: 32_768,
  message: 131_072,
  script: 65_536,
  expr: 1024,
  zone: 128,
  at: 128,
  runs: 10_000,
  /** Times of a job that are queued to be run on request. */
  backfill: 100,
} as const;

export const CronJobId = once(() =>
  z
    .string()
    .regex(/^cj_[A-Za-z0-9_-]{1,253}$/, 'expected the id of a job, cj_…')
    .meta({ id: 'CronJobId' }),
);
export const CronJobName = once(() => WellFormed().min(1).max(cronLimits.name).meta({ id: 'CronJobName' }));
/** Names appear in lists, prompts and terminals, so deceptive characters are rejected. */
export const NewCronJobName = once(() =>
  CronJobName().regex(/^[^\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]*$/u, 'expected no control characters, line breaks or bidirectional marks'),
);
export const CronExecutionId = once(() => z.string().min(1).max(256));

const Zone = once(() =>
  z.string().min(1).max(cronLimits.zone).describe('IANA name of a time zone, or an offset; `scheduler.cron.defaultTimezone` when absent.'),
);
const Expr = once(() => z.string().min(1).max(cronLimits.expr).describe('Cron expression of five fields, or six with seconds first.'));

/** Schedule of a job as requested by a caller: exactly one kind (json-rpc.md §2.3). */
export const CronScheduleRequest = once(() =>
  z
    .discriminatedUnion('kind', [
      z.strictObject({ kind: z.literal('cron'), expr: Expr(), tz: Zone().optional() }),
      z.strictObject({ kind: z.literal('every'), everyMs: SafePositive(), anchorMs: EpochMs.optional() }),
      z.strictObject({
        kind: z.literal('at'),
        at: z.string().min(1).max(cronLimits.at).describe('A date and time, with an offset or `Z`, or as wall time in `tz`.'),
        tz: Zone().optional(),
        fold: z.enum(['earlier', 'later']).optional().describe('Selects one of two equal wall times when clocks go back.'),
      }),
      z.strictObject({ kind: z.literal('in'), seconds: SafePositive() }),
    ])
    .meta({ id: 'CronScheduleRequest' }),
);
export type CronScheduleRequest = z.output<ReturnType<typeof CronScheduleRequest>>;

/** Stored schedule of a job, with `at` and `in` resolved to an instant. */
export const CronSchedule = once(() =>
  z
    .discriminatedUnion('kind', [
      z.strictObject({ kind: z.literal('cron'), expr: Expr(), tz: z.string().min(1).max(cronLimits.zone) }),
      z.strictObject({ kind: z.literal('every'), everyMs: SafePositive(), anchorMs: EpochMs }),
      z.strictObject({ kind: z.literal('at'), atMs: EpochMs }),
    ])
    .meta({ id: 'CronSchedule' }),
);
export type CronSchedule = z.output<ReturnType<typeof CronSchedule>>;

const authorable = once(
  () =>
    [
      z.strictObject({
        kind: z.literal('heartbeat_event'),
        text: WellFormed().min(1).max(cronLimits.text),
        wakeMode: z.enum(['now', 'next-heartbeat']).default('next-heartbeat'),
      }),
      z.strictObject({ kind: z.literal('delivery'), text: WellFormed().min(1).max(cronLimits.text) }),
      z.strictObject({
        kind: z.literal('agent_turn'),
        message: WellFormed().min(1).max(cronLimits.message),
        model: z.string().min(1).max(512).optional().describe('`provider/model` or a bare model id; the model of the operation `cron` when absent.'),
        timeoutSeconds: z.int().min(1).max(86_400).optional().describe('Maximum duration of the turn; 600 when absent.'),
      }),
    ] as const,
);

/** Action of a job as requested by a caller. */
export const CronPayload = once(() => z.discriminatedUnion('kind', [...authorable()]).meta({ id: 'CronPayload' }));

export const cronActions = ['memory_review', 'memory_lifecycle', 'reflection'] as const;
export type CronAction = (typeof cronActions)[number];

/** Action of a job; built-in jobs have an `internal_action`. */
export const CronJobPayload = once(() =>
  z
    .discriminatedUnion('kind', [...authorable(), z.strictObject({ kind: z.literal('internal_action'), action: z.enum(cronActions) })])
    .meta({ id: 'CronJobPayload' }),
);
export type CronJobPayload = z.output<ReturnType<typeof CronJobPayload>>;

export const CronDeliveryTarget = once(() =>
  z
    .strictObject({
      conversation: z.strictObject({ conversationScope: ConversationScope, conversationRef: ConversationRef }),
      destinationEndpoint: ChannelEndpoint,
    })
    .meta({ id: 'CronDeliveryTarget' }),
);
export type CronDeliveryTarget = z.output<ReturnType<typeof CronDeliveryTarget>>;

export const CronWakeGate = once(() =>
  z
    .strictObject({
      script: WellFormed().min(1).max(cronLimits.script),
      language: z.enum(['js', 'ts']),
      timeoutSeconds: z.int().min(1).max(300).describe('The script runs for at most 30 seconds, whatever is set here.'),
    })
    .meta({ id: 'CronWakeGate' }),
);

export const CronToolPolicy = once(() =>
  z
    .strictObject({
      profile: z.enum(['minimal', 'coding', 'messaging', 'supervisor', 'full']),
      allow: z.array(ToolPattern).max(256).default([]),
      deny: z.array(ToolPattern).max(256).default([]),
    })
    .meta({ id: 'CronToolPolicy' }),
);

export const CronSessionPolicy = once(() =>
  z
    .discriminatedUnion('strategy', [
      z.strictObject({ strategy: z.literal('fresh') }),
      z.strictObject({ strategy: z.literal('rolling'), maxHistoryTurns: z.int().min(1).max(20) }),
    ])
    .meta({ id: 'CronSessionPolicy' }),
);

/** Optional fields of a job that control how it runs. */
export const cronPolicyShape = once(() => ({
  sessionPolicy: CronSessionPolicy().optional().describe('Whether the turn sees earlier runs: none (`fresh`, the default), or the latest ones.'),
  continuationMode: z
    .enum(['none', 'heartbeat_excerpt', 'origin_history'])
    .optional()
    .describe('Where else the result is delivered: nowhere, as an excerpt to the next heartbeat, or to the conversation of `deliveryTarget`.'),
  deliveryTarget: CronDeliveryTarget().optional().describe('Recipient of the result.'),
  wakeGate: CronWakeGate().optional().describe('A script, run in a sandbox before the model, that decides whether there is something to do.'),
  cacheRetention: z.enum(['none', 'short', 'long']).optional().describe("How long the provider's prompt cache should keep the prefix."),
  toolPolicy: CronToolPolicy().optional().describe("Tools of the run, within the agent's own."),
  maxConsecutiveDependencyErrors: z.int().min(0).max(10_000).optional().describe('Consecutive provider failures before the job is paused; 0: never.'),
}));
export const CronPolicies = once(() => z.strictObject(cronPolicyShape()));
export type CronPolicies = z.output<ReturnType<typeof CronPolicies>>;

const consecutiveErrors = once(() => z.int().min(0));

/** State of a job (json-rpc.md §3). */
export const CronLifecycle = once(() =>
  z
    .discriminatedUnion('state', [
      z.strictObject({ state: z.literal('scheduled'), nextRunAtMs: EpochMs.nullable(), consecutiveDependencyErrors: consecutiveErrors() }),
      z.strictObject({
        state: z.literal('paused'),
        reason: z.enum(['operator', 'dependency_errors']),
        nextRunAtMs: EpochMs.nullable(),
        consecutiveDependencyErrors: consecutiveErrors(),
      }),
      z.strictObject({ state: z.literal('one_shot_claimed'), executionId: CronExecutionId(), scheduledForMs: EpochMs, claimedAtMs: EpochMs }),
      z.strictObject({ state: z.literal('one_shot_terminal'), terminalExecutionId: CronExecutionId(), terminalAtMs: EpochMs }),
    ])
    .meta({ id: 'CronLifecycle' }),
);
export type CronLifecycle = z.output<ReturnType<typeof CronLifecycle>>;

export const cronTriggers = ['scheduled', 'catchup', 'manual'] as const;
export const cronWorkKinds = ['agent_turn', 'heartbeat_event', 'internal_action', 'delivery_only'] as const;
export const cronRunStates = ['started', 'dispatched', 'completed', 'failed', 'aborted', 'skipped', 'unknown'] as const;
export const cronDeliveryStates = ['not_requested', 'suppressed', 'pre_send_failed', 'accepted', 'partial', 'rejected', 'unknown'] as const;
export type CronTrigger = (typeof cronTriggers)[number];
export type CronWorkKind = (typeof cronWorkKinds)[number];
export type CronRunState = (typeof cronRunStates)[number];
export type CronDeliveryState = (typeof cronDeliveryStates)[number];

/** Decision of a wake gate about a run; `failed_open`: the gate made none, so the job ran. */
export const CronGateVerdict = once(() =>
  z
    .strictObject({
      outcome: z.enum(['woke', 'failed_open', 'skipped']),
      reason: z.string().max(1100).optional().describe('Why the gate did not decide.'),
      logs: z.string().max(1000).optional().describe('End of the script output.'),
    })
    .meta({ id: 'CronGateVerdict' }),
);
export type CronGateVerdict = z.output<ReturnType<typeof CronGateVerdict>>;

export const CronCounter = once(() =>
  z
    .strictObject({
      name: z
        .string()
        .max(64)
        .regex(/^[a-z][a-z0-9_]*$/, 'expected lower-case letters, digits and "_", starting with a letter'),
      value: z.int().min(0),
    })
    .meta({ id: 'CronCounter' }),
);
export type CronCounter = z.output<ReturnType<typeof CronCounter>>;

/** Fields of an occurrence known from its start, contained in both events and in the run record. */
export const cronRunIdentity = once(() => ({
  executionId: CronExecutionId(),
  jobId: CronJobId(),
  agentId: AgentId,
  scheduledForMs: EpochMs,
  trigger: z.enum(cronTriggers),
  workKind: z.enum(cronWorkKinds),
  rootRunId: z.string().min(1).max(300),
  startedAtMs: EpochMs,
}));
