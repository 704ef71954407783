import { AgentId, once } from '@gatehouse/contract';
import * as z from 'zod';

const SubagentContext = once(() =>
  z.strictObject({
    maxSpawnDepth: z.int().min(1).max(10).default(3).describe('How deep sub-agents may be nested: with 1 a sub-agent cannot start others.'),
    maxChildrenPerAgent: z.int().min(1).max(20).default(5).describe('Concurrent sub-agents of one conversation or one token.'),
    maxQueuedPerAgent: z.int().min(0).max(1000).default(10).describe('Further sub-agents in the queue for a slot; with 0 they are refused.'),
    queueTimeoutMs: z
      .int()
      .min(1000)
      .max(3_600_000)
      .default(120_000)
      .describe('Milliseconds in the queue after which a run fails with `queue_timeout`.'),
    maxRunTimeoutMs: z.int().min(1000).max(3_600_000).default(600_000).describe('Maximum duration of a run, in milliseconds.'),
    perStepTimeoutMs: z
      .int()
      .min(1000)
      .max(3_600_000)
      .default(60_000)
      .describe('Milliseconds per allowed step; the sum limits a run in addition to `maxRunTimeoutMs`.'),
    maxResultTokens: z.int().min(100).max(100_000).default(4000).describe('Longest result, in tokens, that the requester receives in full.'),
    resultRetentionMs: z
      .int()
      .min(60_000)
      .max(30 * 86_400_000)
      .default(86_400_000)
      .describe('How long the file of a large result is kept, in milliseconds.'),
    condensationStrategy: z
      .enum(['auto', 'always', 'never'])
      .default('auto')
      .describe(
        'How a result is shortened for its summary. `auto`: by a model when it exceeds `maxResultTokens`; `always`: by a model when it does not fit into a summary; `never`: its beginning and end are kept, as for nodes of a graph always: the nodes that follow read the result itself.',
      ),
    includeParentHistory: z
      .enum(['none', 'summary'])
      .default('none')
      .describe('Default for what a sub-agent receives of the requesting conversation.'),
    parentSummaryMaxTokens: z.int().min(50).max(20_000).default(1000).describe('Maximum tokens of that history.'),
  }),
);

/** `security.agentToAgent`: how agents start others and write to one another. */
export const AgentToAgentConfig = once(() =>
  z.strictObject({
    enabled: z.boolean().default(true).describe('Agents may send messages to conversations (`session.send`) and start sub-agents.'),
    allowAgents: z
      .array(AgentId)
      .max(500)
      .default([])
      .describe('The only other agents that an agent may start or write to; when empty, all that its token may use.'),
    maxPingPongTurns: z.int().min(0).max(5).default(3).describe('Default number of replies in a `ping-pong`.'),
    waitTimeoutMs: z.int().min(0).max(300_000).default(60_000).describe('Default duration of `subagent.wait`, in milliseconds.'),
    steerInject: z
      .boolean()
      .default(false)
      .describe(
        'Injects a message of `subagent.steer` into the run at its next step; otherwise the run is stopped and a new one starts with the message.',
      ),
    subAgentMaxSteps: z.int().min(1).max(1000).default(50).describe('Default maximum of model calls of a sub-agent.'),
    subAgentToolGroups: z
      .array(z.string().regex(/^[a-z][a-z0-9_]{0,63}$/, 'expected the name of a tool group'))
      .max(16)
      .default(['coding'])
      .describe('Default tool groups of a sub-agent, limited to the tools of its agent and its requester.'),
    subAgentRetentionMs: z
      .int()
      .min(60_000)
      .max(30 * 86_400_000)
      .default(3_600_000)
      .describe('How long an ended run stays listed, in milliseconds; at most 1000 of each owner are kept.'),
    graphMaxConcurrency: z.int().min(1).max(64).default(4).describe('Concurrent nodes of one graph.'),
    graphMaxGlobalSubAgents: z
      .int()
      .min(1)
      .max(1000)
      .default(20)
      .describe('Concurrent sub-agents of all graphs, conversations and tokens; further ones wait.'),
    graphMaxResultLength: z.int().min(500).max(100_000).default(12_000).describe('Maximum characters of a result that a graph passes on.'),
    subagentContext: SubagentContext().prefault({}).describe('Limits of sub-agents, their input and their results.'),
  }),
);
export type AgentToAgentConfig = z.output<ReturnType<typeof AgentToAgentConfig>>;
