import * as z from 'zod';
import { once } from '../once.ts';
import { method } from '../method.ts';
import { ModelName } from '../shared/agent-config.ts';
import { AgentId, conversationAddress, conversationIdentity, ConversationRef } from '../shared/session.ts';
import { WorkWaiting } from '../shared/waiting.ts';
import { RootRunId, SubAgentCompletion, SubAgentRunId, SubAgentTelemetry } from '../shared/sub-agent.ts';
import { EpochMs } from '../shared/turn.ts';

const runId = 'sr_00000000-0000-7000-8000-000000000001';
const rootRunId = 'root-rpc-00000000-0000-7000-8000-000000000001';
const conversationRef = 'cv_0000000000000000000000000000000000000000000';

const Text = once(() => z.string().min(1).max(100_000));
const Line = once(() => z.string().min(1).max(1000));

const base = once(() => ({ runId: SubAgentRunId(), agentId: AgentId, runtimeMs: z.int().min(0) }));

/** Messages from one conversation to another, and sub-agents (json-rpc.md §4 session). */
export const sessionRuns = {
  'session.send': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Sends text to an existing conversation, under the policy of `security.agentToAgent`.',
    description:
      '`fire-and-forget` returns once the message is stored; its turn runs and survives a crash. `wait` also waits for the answer, `ping-pong` lets ' +
      'both conversations answer each other until an answer contains `[ANNOUNCE_SKIP]` or `maxTurns` answers were sent back. When the wait ends early the ' +
      'turn continues. An agent cannot wait for `ping-pong`: the exchange continues once its turn has ended. An agent reaches its conversations with the principal that it works for, and exactly the sub-agents that it delegated to.',
    params: () =>
      z.strictObject({
        ...conversationAddress,
        text: Text(),
        mode: z.enum(['fire-and-forget', 'wait', 'ping-pong']).default('fire-and-forget'),
        timeoutMs: z.int().min(1).max(600_000).default(60_000).describe('For `wait` and `ping-pong`, in milliseconds.'),
        maxTurns: z
          .int()
          .min(0)
          .max(5)
          .optional()
          .describe('Maximum answers sent back in `ping-pong`; `security.agentToAgent.maxPingPongTurns` when absent.'),
      }),
    result: () =>
      z.strictObject({
        sent: z.literal(true),
        ...conversationIdentity,
        mode: z.enum(['fire-and-forget', 'wait', 'ping-pong']),
        response: z.string().optional().describe('The last answer, for `wait` and `ping-pong`.'),
        announced: z
          .boolean()
          .optional()
          .describe(
            'Whether the last answer was put into the inbox of the conversation’s owner: when the owner does not wait for it, and it does not contain `[ANNOUNCE_SKIP]`.',
          ),
        turnsCompleted: z.int().min(0).optional().describe('Answers sent back, for `ping-pong`.'),
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
      'The run is stored before the answer and survives a crash. Its result is announced to the requester: to an agent in the calling conversation, ' +
      'to a token in its inbox or the target of `announceChannelId`. Fails with `precondition_failed` while spawning is paused, at the maximum ' +
      'depth, or when the queue is full. `async` is accepted and has no effect.',
    params: () =>
      z.strictObject({
        task: Text().describe('The task of the sub-agent; it sees nothing else of the conversation.'),
        agent: AgentId.optional().describe('Agent that runs the task; the calling agent or the default agent when absent.'),
        model: ModelName.optional(),
        maxSteps: z.int().min(1).max(1000).optional().describe('`security.agentToAgent.subAgentMaxSteps` when absent.'),
        expectedOutputs: z.array(Line()).max(32).optional().describe('What the result must contain; passed to the sub-agent.'),
        artifactRefs: z.array(Line()).max(32).optional().describe('Workspace files and results that the sub-agent should read.'),
        objective: Line().optional().describe('The larger goal behind the task.'),
        domainKnowledge: z.array(Line()).max(32).optional(),
        toolGroups: z
          .array(z.string().regex(/^[a-z][a-z0-9_]{0,63}$/, 'expected the name of a tool group'))
          .max(16)
          .optional()
          .describe('Groups that the sub-agent may use, within those of its agent; `security.agentToAgent.subAgentToolGroups` when absent.'),
        requiredTools: z.array(z.string().min(1).max(128)).max(32).optional().describe('Refused when the sub-agent would not have one of these.'),
        includeParentHistory: z.enum(['none', 'summary']).optional(),
        announceChannelType: z
          .string()
          .min(1)
          .max(64)
          .optional()
          .describe('`gateway`, or the type of a configured channel; with `announceChannelId`, and not for agents.'),
        announceChannelId: z
          .string()
          .min(1)
          .max(256)
          .optional()
          .describe(
            'For `gateway`: `inbox`, or the reference of the conversation to notify. Otherwise `NAME/ID`: the channel, and a conversation on it.',
          ),
        operationId: z.string().min(1).max(256).optional().describe('The same id from the same caller within 24 hours is the same run.'),
        async: z.boolean().optional(),
      }),
    result: () =>
      z.strictObject({
        runId: SubAgentRunId(),
        rootRunId: RootRunId(),
        conversationRef: ConversationRef.describe('Conversation of the sub-agent, for `session.send` and `session.history`.'),
        async: z.literal(true),
        inProgress: z.literal(true),
        noteType: z.literal('background_running'),
        queued: z.boolean().optional(),
        deduped: z.boolean().optional(),
        existingRunId: SubAgentRunId().optional(),
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
    summary: 'Returns the status of a sub-agent run; unknown and foreign ids get the same answer.',
    description:
      'Tokens see `summary` and `resultRef` for runs of their principal, admins for all, with the `cause` of a failure; agents see `endReason`, `completedAtMs` and `errorKind` only.',
    params: () => z.strictObject({ runId: z.string().min(1).max(256) }),
    result: () =>
      z.discriminatedUnion('status', [
        z.strictObject({ status: z.literal('queued'), ...base(), queuedAt: EpochMs }),
        z.strictObject({
          status: z.literal('running'),
          ...base(),
          startedAt: EpochMs,
          queuedAt: EpochMs.optional(),
          waiting: WorkWaiting().optional().describe('What the run waits for.'),
        }),
        z.strictObject({
          status: z.enum(['completed', 'failed']),
          ...base(),
          startedAt: EpochMs.optional(),
          completion: SubAgentCompletion(),
          telemetry: SubAgentTelemetry().optional(),
        }),
      ]),
    errors: ['not_found'],
    examples: [{ params: { runId }, result: { status: 'running', runId, agentId: 'default', runtimeMs: 1200, startedAt: 1790000000000 } }],
    since: '0.1.0',
  }),
};
