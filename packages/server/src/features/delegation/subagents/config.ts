import { AgentId } from '@gatehouse/contract';
import * as z from 'zod';

const SubagentContext = z.strictObject({
  maxSpawnDepth: z.int().min(1).max(10).default(3).describe('How deep sub-agents may ask for sub-agents: 1 means that a sub-agent may not.'),
  maxChildrenPerAgent: z.int().min(1).max(20).default(5).describe('Sub-agents of one conversation, or of one token, that run at once.'),
  maxQueuedPerAgent: z.int().min(0).max(1000).default(10).describe('Further ones that wait for a place; 0: none, they are refused.'),
  queueTimeoutMs: z.int().min(1000).max(3_600_000).default(120_000).describe('Milliseconds that one waits before it fails with `queue_timeout`.'),
  maxRunTimeoutMs: z.int().min(1000).max(3_600_000).default(600_000).describe('Longest run of a sub-agent, in milliseconds.'),
  perStepTimeoutMs: z
    .int()
    .min(1000)
    .max(3_600_000)
    .default(60_000)
    .describe('Milliseconds for each step that a run may take; together they bound it beside `maxRunTimeoutMs`.'),
  maxResultTokens: z.int().min(100).max(100_000).default(4000).describe('Tokens of a result up to which whoever asked is told the whole of it.'),
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
      'Who shortens a result for its summary. `auto`: a model, when the result is beyond `maxResultTokens`; `always`: a model, when it does not fit into a summary; `never`: its beginning and its end are kept.',
    ),
  includeParentHistory: z
    .enum(['none', 'summary'])
    .default('none')
    .describe('What a sub-agent is told of the conversation that asked, when the call does not say.'),
  parentSummaryMaxTokens: z.int().min(50).max(20_000).default(1000).describe('Tokens of that at most.'),
});

/** `security.agentToAgent`: how agents set others going and write to one another. */
export const AgentToAgentConfig = z.strictObject({
  enabled: z.boolean().default(true).describe('Agents may send messages to conversations (`session.send`) and ask for sub-agents.'),
  allowAgents: z
    .array(AgentId)
    .max(500)
    .default([])
    .describe('The only agents, beside itself, that an agent may ask or write to; all that the token behind it may use when empty.'),
  maxPingPongTurns: z.int().min(0).max(5).default(3).describe('Answers that go back in a `ping-pong`, when the call does not say.'),
  waitTimeoutMs: z.int().min(0).max(300_000).default(60_000).describe('How long `subagent.wait` waits when the call does not say, in milliseconds.'),
  steerInject: z
    .boolean()
    .default(false)
    .describe('A message of `subagent.steer` comes into the running run at its next step; otherwise the run is ended and a new one begins with it.'),
  subAgentMaxSteps: z.int().min(1).max(1000).default(50).describe('Model calls of a sub-agent, when the call does not say.'),
  subAgentToolGroups: z
    .array(z.string().regex(/^[a-z][a-z0-9_]{0,63}$/, 'expected the name of a tool group'))
    .max(16)
    .default(['coding'])
    .describe('Groups of tools that a sub-agent has, as far as its agent and whoever asked have them, when the call does not say.'),
  subAgentRetentionMs: z
    .int()
    .min(60_000)
    .max(30 * 86_400_000)
    .default(3_600_000)
    .describe('How long a run that ended stays on the list, in milliseconds; at most 1000 do.'),
  graphMaxConcurrency: z.int().min(1).max(64).default(4).describe('Nodes of one graph that run at once.'),
  graphMaxGlobalSubAgents: z
    .int()
    .min(1)
    .max(1000)
    .default(20)
    .describe('Sub-agents of all graphs, conversations and tokens that run at once; further ones wait.'),
  graphMaxResultLength: z.int().min(500).max(100_000).default(12_000).describe('Characters of a result that a graph passes on.'),
  subagentContext: SubagentContext.prefault({}).describe('Bounds of sub-agents, and what they are told and tell.'),
});
export type AgentToAgentConfig = z.output<typeof AgentToAgentConfig>;
