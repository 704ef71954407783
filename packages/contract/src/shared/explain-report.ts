import * as z from 'zod';
import { once } from '../once.ts';
import { RootCause } from './root-cause.ts';

const count = z.int().min(0);
const usd = z.number().nullable();
const toolCounts = { ok: count, failed: count };

const Failure = once(() =>
  z.strictObject({
    seq: count.describe('Number of the step in the records that were read, oldest first.'),
    recordId: z.string().describe('The trace record, for `obs.trace.get`.'),
    kind: z.enum(['tool', 'model', 'delivery', 'turn']),
    toolName: z.string().describe('The tool, the model as provider/modelId, or `turn`.'),
    classifiedFailureBy: z.enum(['tool_result', 'gate', 'provider', 'delivery', 'turn']),
    transportOk: z.boolean().describe('Whether an answer arrived at all.'),
    httpStatus: z.int().optional(),
    errorKind: z.string(),
    matchedRule: z.string().optional().describe('The rule that recognized a known kind of failure in it.'),
    resultDigest: z.string().describe('First 16 hex digits of the SHA-256 of the result or the error text.'),
    resultBytes: count,
    argsDigest: z.string().optional(),
  }),
);

const ContextBudget = once(() =>
  z.strictObject({
    windowTokens: count,
    rawContextWindowTokens: count,
    windowCapSource: z.string(),
    systemTokens: count,
    freshTailTokens: count,
    budgetedHistoryTokens: count,
    keptCount: count,
    assembledInputTokens: count,
    outputHeadroom: z.int(),
    verdict: z.enum(['fits', 'downshifted', 'exhausted']),
  }),
);

const Orchestrated = once(() =>
  z.strictObject({
    runId: z.string(),
    leaseId: z.string().optional(),
    outcome: z.enum(['success', 'failure']),
    durationMs: count,
    exitCode: z.int().nullable(),
    failureClass: z.string().optional(),
    toolCalls: z.array(
      z.strictObject({ tool: z.string(), capability: z.string().nullable(), decision: z.enum(['allow', 'deny']), count: z.int().min(1) }),
    ),
    resultRefs: z.strictObject({ count, bytes: count }),
    savings: z.strictObject({ estSavedTokens: count, savedRatio: z.number() }).optional(),
  }),
);

const Spawned = once(() =>
  z.strictObject({
    leaseId: z.string(),
    parentLeaseId: z.string().optional(),
    rootRunId: z.string(),
    runId: z.string(),
    agentId: z.string(),
    caps: z.array(z.string()),
    toolsInvoked: z.array(z.string()),
    denials: z.array(z.string()),
    terminalOutcome: z.string().optional(),
    runtimeMs: count.optional(),
    tokensUsed: count.optional(),
    costUsd: usd.optional(),
  }),
);

const Coverage = once(() =>
  z.strictObject({
    trajectory: z.strictObject({ found: z.boolean(), records: count }),
    rollup: z.strictObject({ present: z.boolean().describe('Whether the turn itself is stored in the main database.') }),
    offloads: z.strictObject({ pointersResolved: count.describe('Those whose record names the file.'), pointersTotal: count }),
    sources: z.array(z.string()).describe('The tables that were read.'),
    toolStats: z
      .strictObject({
        reconciled: z.boolean().describe('Whether the steps account for every tool call that the records count.'),
        rollupSource: z.literal('last-execution'),
        divergentTools: z.array(z.strictObject({ tool: z.string(), rollup: z.strictObject(toolCounts), trajectory: z.strictObject(toolCounts) })),
      })
      .optional(),
  }),
);

const Learning = once(() =>
  z.strictObject({
    outcomeResolved: z.boolean(),
    outcome: z.string().optional(),
    sources: z.array(z.string()),
    skillsUsed: z.array(z.string()),
    skillFailures: z.array(z.string()).describe('Skills used here whose latest turns failed.'),
    synthesisAbstained: z.boolean(),
  }),
);

const Voice = once(() =>
  z
    .strictObject({
      provider: z.string().nullable().describe('The one that answered, or was asked last; null when none was.'),
      keyless: z.boolean().describe('Whether it needs no key, such as a program of this machine.'),
      model: z.string().optional(),
      durationMs: count.optional().describe('Length of the recording.'),
      costUsd: usd.optional(),
      source: z.enum(['speech', 'transcription']).describe('Whether a text was spoken, or a recording converted to text.'),
      outcome: z.enum(['ok', 'failed']),
      errorKind: z.string().optional(),
    })
    .describe('The last time that the execution spoke or listened.'),
);

/** Why part of a report is missing. */
export const Truncation = once(() =>
  z
    .strictObject({ field: z.string(), reason: z.string(), pointer: z.string().optional().describe('The call that returns it.') })
    .meta({ id: 'Truncation' }),
);

/** Post-mortem of a session: counts, codes, ids and digests, never content. */
export const ExplainReport = once(() =>
  z
    .strictObject({
      schemaVersion: z.literal(1),
      sessionKey: z.string().nullable(),
      conversationRef: z.string().nullable(),
      traceId: z.string().nullable().describe('The execution that the report explains: the requested one, otherwise the newest of the session.'),
      agentId: z.string().nullable(),
      channel: z.strictObject({ type: z.string().nullable(), id: z.string().nullable() }),
      outcome: z
        .strictObject({
          endReason: z.string().nullable().describe('Why the turn ended; null while it runs.'),
          degraded: z.boolean(),
          severity: z.enum(['ok', 'degraded', 'failed']),
        })
        .nullable(),
      cost: z
        .strictObject({ costUsd: usd, totalTokens: count, cacheReadRatio: z.number() })
        .describe('Of all kept records of the session; `costUsd` is null when no price is known.'),
      timing: z.strictObject({ durationMs: count.describe('Of the execution.'), turnCount: count.describe('Kept turns of the session.') }),
      toolStats: z.record(z.string(), z.strictObject({ ...toolCounts, topErrorKind: z.string().optional() })),
      failures: z.array(Failure()).describe('Newest first.'),
      breakerTimeline: z.array(
        z.strictObject({
          seq: count,
          event: z.enum(['opened', 'refused', 'reset']),
          toolName: z.string().describe('The tool, or the model.'),
          consecutiveFailures: count.optional(),
        }),
      ),
      offloads: z.array(z.strictObject({ seq: count, toolName: z.string(), originalChars: count, pointer: z.string().nullable() })),
      summary: z.string(),
      likelyRootCause: RootCause().nullable(),
      suggestedNextSteps: z.array(z.string()),
      truncations: z.array(Truncation()),
      coverage: Coverage().optional(),
      contextBudget: ContextBudget().optional(),
      recall: z
        .strictObject({ recalls: count, zeroHits: count, lastLanes: z.string().nullable(), lastFinalCount: count, rerankerAvailable: z.boolean() })
        .optional(),
      voice: Voice().optional(),
      learning: Learning().optional(),
      orchestrate: z.array(Orchestrated()).optional(),
      cronWakeGate: z
        .strictObject({ jobId: z.string().nullable(), wake: z.boolean(), durationMs: count, toolCalls: count, estTurnsSaved: count })
        .optional(),
      spawnTree: z.array(Spawned()).optional(),
    })
    .meta({ id: 'ExplainReport' }),
);
