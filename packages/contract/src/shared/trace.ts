import * as z from 'zod';
import { once } from '../once.ts';
import { AgentId, ConversationRef } from './session.ts';
import { EpochMs, TurnOrigin } from './turn.ts';

/** What a record is about: a turn, or work that belongs to none. */
export const traceKinds = [
  'turn',
  'delivery',
  'compaction',
  'review',
  'synthesis',
  'background',
  'wake_gate',
  'breaker',
  'autonomy',
  'pipeline',
  'orchestrate',
  'media',
  'embedding',
] as const;
export type TraceKind = (typeof traceKinds)[number];

/**
 * How the work of a record ended. `degraded`: it did its work, but a tool failed, a model was replaced, or something was left out.
 * `waiting`: it continues in a later part, once a person has decided. `skipped`: there was nothing to do.
 */
export const traceOutcomes = ['ok', 'degraded', 'failed', 'cancelled', 'waiting', 'skipped'] as const;
export type TraceOutcome = (typeof traceOutcomes)[number];

/**
 * What a step of a record is about: `context`: history, notes and system prompt; `recall`: search for memories; `model`: one model call
 * with its attempts below it; `attempt`: one request to a provider; `tool`: one tool call; `approval`: the wait for a decision;
 * `compaction`: a summary; `off_load`: a result written to a file; `delegation`: a sub-agent or a graph that was started; `delivery`: a message
 * sent; `breaker`: a circuit breaker that opened, refused or closed; `skill`: a skill that was used; `outcome`: what the turn was judged to be.
 */
export const traceStepKinds = [
  'context',
  'recall',
  'model',
  'attempt',
  'tool',
  'approval',
  'compaction',
  'off_load',
  'delegation',
  'delivery',
  'breaker',
  'skill',
  'outcome',
] as const;
export type TraceStepKind = (typeof traceStepKinds)[number];

const count = z.int().min(0);
/** Text by its digest and size; `preview`: at most 2 KiB of it, secrets redacted, as `observability.content` allows. */
export const TracedText = once(() =>
  z
    .strictObject({ digest: z.string().describe('First 16 hex digits of the SHA-256.'), bytes: count, preview: z.string().optional() })
    .meta({ id: 'TracedText' }),
);
export type TracedText = z.output<ReturnType<typeof TracedText>>;

/** Tokens of one or more model calls. `cached`: read from the provider's cache, part of `in`. */
export const TracedTokens = once(() => z.strictObject({ in: count, out: count, cached: count, cacheWritten: count }).meta({ id: 'TracedTokens' }));
export type TracedTokens = z.output<ReturnType<typeof TracedTokens>>;

/** Why something failed. */
export const TracedError = once(() =>
  z
    .strictObject({
      kind: z.string().describe('A code, such as `rate_limit`, `tool_error`, `timeout` or `denied`.'),
      status: z.int().optional().describe("HTTP status of the provider's answer."),
      text: z.string().optional().describe("The provider's or the tool's own sentence, secrets redacted, at most 2 KiB: for owners only."),
      retryAtMs: EpochMs.optional().describe('When it is tried again.'),
    })
    .meta({ id: 'TracedError' }),
);
export type TracedError = z.output<ReturnType<typeof TracedError>>;

/** One step of a record. */
export const TraceStep = once(() =>
  z
    .strictObject({
      id: count.describe('Number in the record, from 0.'),
      parent: count.optional().describe('The step that it is part of.'),
      kind: z.enum(traceStepKinds),
      name: z.string().describe('The model as provider/modelId, the tool, the skill, or what was done.'),
      at: count.describe('Milliseconds since the start of the record.'),
      ms: count.optional().describe('Duration; absent while it runs.'),
      outcome: z.enum(['ok', 'error', 'denied', 'background', 'waiting', 'cancelled']).optional().describe('Absent while it runs.'),
      error: TracedError().optional(),
      tokens: TracedTokens().optional(),
      costNano: count.nullable().optional().describe('1e-9 US dollars; null when the price is not known.'),
      input: TracedText().optional(),
      output: TracedText().optional(),
      facts: z
        .record(z.string(), z.union([z.string(), z.number(), z.boolean()]))
        .optional()
        .describe('Counts, codes and ids that belong to it, never content.'),
    })
    .meta({ id: 'TraceStep' }),
);
export type TraceStep = z.output<ReturnType<typeof TraceStep>>;

const id = z.string();
/** One unit of work with its steps: a turn, or work that belongs to none. */
export const TraceRecord = once(() =>
  z
    .strictObject({
      id: id.describe(
        'Of a turn: its id, followed by a point and a growing number for each part after a wait or a restart. Otherwise `tr_` and a UUID.',
      ),
      kind: z.enum(traceKinds),
      traceId: id,
      rootRunId: id.optional(),
      /** The record whose work caused this one. */
      parentId: id.optional().describe('The turn that caused it.'),
      conversationRef: ConversationRef.optional(),
      sessionKey: z.string().optional(),
      agentId: AgentId.optional(),
      principalId: z.string().describe('Owner of the conversation, or of the work.'),
      origin: TurnOrigin.optional(),
      messageId: id.optional(),
      channelType: z.string().optional(),
      channelId: z.string().optional(),
      startedAtMs: EpochMs,
      endedAtMs: EpochMs.nullable().describe('Null while it runs.'),
      outcome: z.enum(traceOutcomes).nullable().describe('Null while it runs.'),
      endReason: z.string().nullable().describe('Finish reason of a turn, or the closed list of the kind.'),
      error: TracedError().nullable(),
      model: z.string().nullable().describe('The model that answered last, as provider/modelId.'),
      modelCalls: count,
      toolCalls: count,
      toolErrors: count,
      tokens: TracedTokens(),
      costNano: count.nullable(),
      synthetic: z.boolean().describe('Made by an evaluation, a replay or `webhooks.test`: left out of reports unless asked for.'),
      refs: z
        .record(z.string(), z.string())
        .describe('Ids of what it belongs to: runId, leaseId, graphId, nodeId, jobId, deliveryId, approvalId, taskId.'),
      facts: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).describe('Counts and codes of the whole.'),
      steps: z.array(TraceStep()),
      droppedSteps: count.describe('Steps beyond the limit, which are not kept.'),
    })
    .meta({ id: 'TraceRecord' }),
);
export type TraceRecord = z.output<ReturnType<typeof TraceRecord>>;
