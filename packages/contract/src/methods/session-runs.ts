import * as z from 'zod';
import { method } from '../method.ts';
import { ModelName } from '../shared/agent-config.ts';
import { AgentId, conversationAddress, conversationIdentity, ConversationRef } from '../shared/session.ts';
import { WorkWaiting } from '../shared/waiting.ts';
import { RootRunId, SubAgentCompletion, SubAgentRunId, SubAgentTelemetry } from '../shared/sub-agent.ts';
import { EpochMs } from '../shared/turn.ts';

const runId = 'sr_00000000-0000-7000-8000-000000000001';
const rootRunId = 'root-rpc-00000000-0000-7000-8000-000000000001';
const conversationRef = 'cv_0000000000000000000000000000000000000000000';

const Text = z.string().min(1).max(100_000);
const Line = z.string().min(1).max(1000);

const base = { runId: SubAgentRunId, agentId: AgentId, runtimeMs: z.int().min(0) };

/** Messages from one conversation to another, and sub-agents (json-rpc.md §4 session). */
export const sessionRuns = {
  'session.send': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Sends text to an existing conversation, under the policy of `security.agentToAgent`.',
    description:
      '`fire-and-forget` answers when the message is stored; its turn runs and survives a crash. `wait` also waits for the answer, `ping-pong` lets ' +
      'both conversations answer each other until one answer holds `[ANNOUNCE_SKIP]` or `maxTurns` answers came back. When the wait ends early the ' +
      'turn goes on. An agent is not waited with for `ping-pong`: the answers go on once its turn has ended. An agent reaches conversations of its own with the principal that it works for, and the exact sub-agents that it delegated to.',
    params: z.strictObject({
      ...conversationAddress,
      text: Text,
      mode: z.enum(['fire-and-forget', 'wait', 'ping-pong']).default('fire-and-forget'),
      timeoutMs: z.int().min(1).max(600_000).default(60_000).describe('For `wait` and `ping-pong`, in milliseconds.'),
      maxTurns: z
        .int()
        .min(0)
        .max(5)
        .optional()
        .describe('Answers that go back in `ping-pong`; `security.agentToAgent.maxPingPongTurns` when absent.'),
    }),
    result: z.strictObject({
      sent: z.literal(true),
      ...conversationIdentity,
      mode: z.enum(['fire-and-forget', 'wait', 'ping-pong']),
      response: z.string().optional().describe('The last answer, for `wait` and `ping-pong`.'),
      announced: z
        .boolean()
        .optional()
        .describe(
          'Whether the last answer was put into the inbox of the conversation’s owner: when nobody waits for it, or somebody else does, and it holds no `[ANNOUNCE_SKIP]`.',
        ),
      turnsCompleted: z.int().min(0).optional().describe('Answers that went back, for `ping-pong`.'),
      stats: z.strictObject({ runtimeMs: z.int().min(0), totalTokens: z.int().min(0), totalCost: z.number().min(0).nullable() }).optional(),
    }),
    errors: ['not_found', 'denied', 'precondition_failed', 'timeout', 'rate_limited', 'unavailable'],
    examples: [
      {
        params: { conversationRef, text: 'The build is green.' },
        result: { sent: true, conversationRef, sessionKey: 'ada:desk', agentId: 'default', mode: 'fire-and-forget' },
      },
    ],
    since: '0.1.0',
  }),
  'session.spawn': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Starts a sub-agent in the background and returns the id of its run at once.',
    description:
      'The run is stored before the answer and survives a crash. Its result comes back to whoever asked: an agent is told in the conversation that ' +
      'called, a token in its inbox or where `announceChannelId` says. Fails with `precondition_failed` while spawning is paused, at the deepest ' +
      'level, or when no place is free in the queue. `async` is accepted and changes nothing.',
    params: z.strictObject({
      task: Text.describe('What the sub-agent is to do; it knows nothing else of the conversation.'),
      agent: AgentId.optional().describe('Whose sub-agent; the calling agent, or the default one, when absent.'),
      model: ModelName.optional(),
      maxSteps: z.int().min(1).max(1000).optional().describe('`security.agentToAgent.subAgentMaxSteps` when absent.'),
      expectedOutputs: z.array(Line).max(32).optional().describe('What the result must have; told to the sub-agent.'),
      artifactRefs: z.array(Line).max(32).optional().describe('Files of the workspace and results that the sub-agent is to look at.'),
      objective: Line.optional().describe('The larger aim behind the task.'),
      domainKnowledge: z.array(Line).max(32).optional(),
      toolGroups: z
        .array(z.string().regex(/^[a-z][a-z0-9_]{0,63}$/, 'expected the name of a tool group'))
        .max(16)
        .optional()
        .describe('Groups that the sub-agent may use, as far as its agent may; `security.agentToAgent.subAgentToolGroups` when absent.'),
      requiredTools: z.array(z.string().min(1).max(128)).max(32).optional().describe('Refused when the sub-agent would not have one of these.'),
      includeParentHistory: z.enum(['none', 'summary']).optional(),
      announceChannelType: z.string().min(1).max(64).optional().describe('`gateway`; with `announceChannelId`, and not for agents.'),
      announceChannelId: z.string().min(1).max(256).optional().describe('Of `gateway`: `inbox`, or the reference of a conversation that is told.'),
      operationId: z.string().min(1).max(256).optional().describe('The same id from the same caller within 24 hours is the same run.'),
      async: z.boolean().optional(),
    }),
    result: z.strictObject({
      runId: SubAgentRunId,
      rootRunId: RootRunId,
      conversationRef: ConversationRef.describe('Of the sub-agent, for `session.send` and `session.history`.'),
      async: z.literal(true),
      inProgress: z.literal(true),
      noteType: z.literal('background_running'),
      queued: z.boolean().optional(),
      deduped: z.boolean().optional(),
      existingRunId: SubAgentRunId.optional(),
      dedupAgeMs: z.int().min(0).optional(),
    }),
    errors: ['not_found', 'denied', 'precondition_failed', 'rate_limited', 'conflict'],
    examples: [
      {
        params: { task: 'Read the README and list what is missing.' },
        result: { runId, rootRunId, conversationRef, async: true, inProgress: true, noteType: 'background_running' },
      },
    ],
    since: '0.1.0',
  }),
  'session.run_status': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Tells how a sub-agent run stands; unknown and foreign ids get the same answer.',
    description:
      'A token is told `summary` and `resultRef` of runs of its own principal, an admin those of all, with the `cause` of a failure; agents see `endReason`, `completedAtMs` and `errorKind` only.',
    params: z.strictObject({ runId: z.string().min(1).max(256) }),
    result: z.discriminatedUnion('status', [
      z.strictObject({ status: z.literal('queued'), ...base, queuedAt: EpochMs }),
      z.strictObject({
        status: z.literal('running'),
        ...base,
        startedAt: EpochMs,
        queuedAt: EpochMs.optional(),
        waiting: WorkWaiting.optional().describe('What the run waits for.'),
      }),
      z.strictObject({
        status: z.enum(['completed', 'failed']),
        ...base,
        startedAt: EpochMs.optional(),
        completion: SubAgentCompletion,
        telemetry: SubAgentTelemetry.optional(),
      }),
    ]),
    errors: ['not_found'],
    examples: [{ params: { runId }, result: { status: 'running', runId, agentId: 'default', runtimeMs: 1200, startedAt: 1790000000000 } }],
    since: '0.1.0',
  }),
};
