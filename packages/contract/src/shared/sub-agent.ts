import * as z from 'zod';
import { once } from '../once.ts';
import { AgentId, ConversationRef } from './session.ts';
import { EpochMs, FinishReason } from './turn.ts';
import { EffectsRefused, FailureCause } from './waiting.ts';

export const SubAgentRunId = once(() =>
  z
    .string()
    .regex(/^sr_[0-9a-f-]{36}$/, 'expected sr_ followed by a UUID')
    .meta({ id: 'SubAgentRunId' }),
);

export const RootRunId = once(() => z.string().min(1).max(256).meta({ id: 'RootRunId' }));

export const subAgentStates = ['queued', 'running', 'completed', 'failed'] as const;
export type SubAgentState = (typeof subAgentStates)[number];

export const subAgentEndReasons = ['completed', 'failed', 'killed', 'watchdog_timeout', 'ghost_sweep'] as const;
export type SubAgentEndReason = (typeof subAgentEndReasons)[number];

/** A result that is too large for a summary, stored as a file (json-rpc.md §2.4). */
export const ResultRef = once(() =>
  z
    .strictObject({
      ref: z.string().max(1024).describe('Path below the address of the gateway: `GET` it with the same token, ranges allowed.'),
      kind: z.enum(['jsonl', 'json', 'csv', 'html', 'text', 'binary']),
      bytes: z.int().min(0),
      preview: z.string().max(4096).describe('The beginning, cut between code points; empty for `binary`.'),
      expiresAt: EpochMs,
      rows: z.int().min(0).optional().describe('For `jsonl`, `csv`, and for `json` arrays.'),
      schema: z.array(z.string().max(256)).max(256).optional().describe('Column names, or keys of the first object.'),
    })
    .meta({ id: 'ResultRef' }),
);
export type ResultRef = z.output<ReturnType<typeof ResultRef>>;

/** Characters of a completion's `summary`. */
export const maxSummaryCharacters = 2000;

const completionBase = once(() => ({
  endReason: z.enum(subAgentEndReasons),
  completedAtMs: EpochMs,
  errorKind: z.string().max(64).optional().describe('Only for failures.'),
  effectsRefused: EffectsRefused().optional(),
}));

/** What an agent may know about the end of a run: nothing of its text. */
export const SubAgentCompletionFacts = once(() => z.strictObject(completionBase()).meta({ id: 'SubAgentCompletionFacts' }));

/** How a run ended (json-rpc.md §2.4). */
export const SubAgentCompletion = once(() =>
  z
    .strictObject({
      ...completionBase(),
      summary: z.string().max(maxSummaryCharacters).optional(),
      resultRef: ResultRef().optional(),
      cause: FailureCause().optional(),
    })
    .meta({ id: 'SubAgentCompletion' }),
);
export type SubAgentCompletion = z.output<ReturnType<typeof SubAgentCompletion>>;

/** Cost of a run; in US dollars, null when the price of a call is unknown. */
export const SubAgentTelemetry = once(() =>
  z
    .strictObject({
      tokensUsedTotal: z.int().min(0),
      costTotal: z.number().min(0).nullable(),
      finishReason: FinishReason,
      stepsExecuted: z.int().min(0),
      cacheReadTokens: z.int().min(0),
      cacheWriteTokens: z.int().min(0),
      effectsRefused: EffectsRefused().optional(),
    })
    .meta({ id: 'SubAgentTelemetry' }),
);
export type SubAgentTelemetry = z.output<ReturnType<typeof SubAgentTelemetry>>;

const recordFields = once(() => ({
  runId: SubAgentRunId(),
  status: z.enum(subAgentStates),
  agentId: AgentId,
  startedAt: EpochMs.describe('When it began to run; while queued, when it was accepted.'),
  queuedAt: EpochMs.optional(),
  depth: z.int().min(1).optional(),
  rootRunId: RootRunId().optional(),
  graphId: z.string().optional(),
  nodeId: z.string().optional(),
}));

/** A run on the rpc route of `subagent.list`: content-free (json-rpc.md §2.4). */
export const SubAgentFacts = once(() =>
  z.strictObject({ ...recordFields(), completion: SubAgentCompletionFacts().optional() }).meta({ id: 'SubAgentFacts' }),
);

/** A run on the admin route of `subagent.list`. */
export const SubAgentRecord = once(() =>
  z
    .strictObject({
      ...recordFields(),
      completion: SubAgentCompletion().optional(),
      task: z.string(),
      model: z.string().optional(),
      conversationRef: ConversationRef.describe('Conversation of the run itself.'),
      requesterRef: ConversationRef.nullable().describe('The requesting conversation.'),
      parentRunId: SubAgentRunId().optional(),
      principalId: z.string(),
      runtimeMs: z.int().min(0),
      telemetry: SubAgentTelemetry().optional(),
    })
    .meta({ id: 'SubAgentRecord' }),
);
export type SubAgentRecord = z.output<ReturnType<typeof SubAgentRecord>>;
