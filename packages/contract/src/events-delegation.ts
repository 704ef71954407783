import * as z from 'zod';
import { event } from './event.ts';
import { GraphId, graphNodeStates, graphNodeTypes, graphStates, NodeId } from './shared/graph.ts';
import { AgentId, ConversationRef, PrintedSessionKey } from './shared/session.ts';
import { RootRunId, subAgentEndReasons, SubAgentRunId } from './shared/sub-agent.ts';
import { ModelTier } from './shared/model-tier.ts';
import { EpochMs } from './shared/turn.ts';

const timestamp = EpochMs;

const subAgent = {
  runId: SubAgentRunId(),
  rootRunId: RootRunId(),
  agentId: AgentId,
  requesterRef: ConversationRef.nullable().describe('The conversation that requested the run.'),
  parentRunId: SubAgentRunId().optional(),
  depth: z.int().min(1),
  graphId: GraphId().optional(),
  nodeId: NodeId().optional(),
  timestamp,
};
const task = z.string().max(200).describe('The beginning of the task.');
const graphRun = { graphId: GraphId(), agentId: AgentId, timestamp };

/** Events of sub-agents, graphs and root runs (http-gateway.md §6, json-rpc.md §6). */
export const delegationEvents = {
  'session:sub_agent_spawned': event({
    category: 'Sessions',
    visibility: 'owner',
    summary: 'A sub-agent run was accepted and stored.',
    payload: () => z.strictObject({ ...subAgent, task }),
  }),
  'session:sub_agent_spawn_queued': event({
    category: 'Sessions',
    visibility: 'owner',
    summary: 'A run waits for a slot among the sub-agents of its requester.',
    payload: () => z.strictObject({ ...subAgent, queuePosition: z.int().min(1), activeChildren: z.int().min(0), maxChildren: z.int().min(1) }),
  }),
  'session:sub_agent_spawn_started': event({
    category: 'Sessions',
    visibility: 'owner',
    summary: 'A run began; emitted again when it resumes after a crash.',
    payload: () => z.strictObject({ ...subAgent, resumed: z.boolean() }),
  }),
  'session:sub_agent_spawn_rejected': event({
    category: 'Sessions',
    visibility: 'owner',
    summary: 'A request for a sub-agent was refused; nothing was stored.',
    payload: () =>
      z.strictObject({
        agentId: AgentId,
        requesterRef: ConversationRef.nullable(),
        reason: z.enum(['depth_exceeded', 'children_exceeded', 'queue_full', 'not_allowed', 'paused', 'stopping', 'capability', 'guard', 'revoked']),
        timestamp,
      }),
  }),
  'session:sub_agent_completed': event({
    category: 'Sessions',
    visibility: 'owner',
    summary: 'A run ended, with or without success; `cost` is in US dollars, null when a price is unknown.',
    payload: () =>
      z.strictObject({
        ...subAgent,
        success: z.boolean(),
        endReason: z.enum(subAgentEndReasons),
        runtimeMs: z.int().min(0),
        tokensUsed: z.int().min(0),
        cost: z.number().min(0).nullable(),
      }),
  }),
  'session:sub_agent_lifecycle_ended': event({
    category: 'Sessions',
    visibility: 'owner',
    summary: 'A run is complete: it ended, and its requester was notified if required.',
    payload: () => z.strictObject({ ...subAgent, announced: z.enum(['turn', 'inbox', 'none', 'seen']) }),
  }),
  'session:sub_agent_archived': event({
    category: 'Sessions',
    visibility: 'owner',
    summary: 'An old ended run was removed from the list, and its stored result was deleted.',
    payload: () => z.strictObject(subAgent),
  }),
  'session:cross_send': event({
    category: 'Sessions',
    visibility: 'owner',
    summary: 'A message was sent from one conversation to another (`session.send`).',
    payload: () =>
      z.strictObject({
        fromRef: ConversationRef.nullable(),
        toRef: ConversationRef,
        toSessionKey: PrintedSessionKey,
        agentId: AgentId,
        mode: z.enum(['fire-and-forget', 'wait', 'ping-pong']),
        timestamp,
      }),
  }),
  'session:ping_pong_turn': event({
    category: 'Sessions',
    visibility: 'owner',
    summary: 'One answer of a `ping-pong` between two conversations.',
    payload: () =>
      z.strictObject({
        fromRef: ConversationRef,
        toRef: ConversationRef,
        agentId: AgentId,
        turnNumber: z.int().min(1),
        totalTurns: z.int().min(1),
        tokensUsed: z.int().min(0),
        timestamp,
      }),
  }),
  'graph:started': event({
    category: 'Graphs',
    visibility: 'owner',
    summary: 'A graph was stored and begins; emitted again after a restart.',
    payload: () => z.strictObject({ ...graphRun, label: z.string().optional(), nodeCount: z.int().min(1), resumed: z.boolean() }),
  }),
  'graph:node_updated': event({
    category: 'Graphs',
    visibility: 'owner',
    summary: 'A node of a graph began, ended, waits for an answer, or reports progress.',
    payload: () =>
      z.strictObject({
        ...graphRun,
        nodeId: NodeId(),
        status: z.enum(graphNodeStates),
        runId: SubAgentRunId().optional(),
        progress: z.string().max(200).optional(),
        waitsForAnswer: z.boolean().optional(),
        durationMs: z.int().min(0).optional(),
        error: z.string().max(500).optional(),
      }),
  }),
  'graph:driver_lifecycle': event({
    category: 'Graphs',
    visibility: 'owner',
    summary: 'A typed node moved to another phase.',
    payload: () =>
      z.strictObject({
        ...graphRun,
        nodeId: NodeId(),
        typeId: z.enum(graphNodeTypes),
        phase: z.enum(['initialized', 'progress', 'completed', 'partial_complete', 'failed', 'aborted']),
      }),
  }),
  'graph:completed': event({
    category: 'Graphs',
    visibility: 'owner',
    summary: 'A graph ended, successfully or not.',
    payload: () =>
      z.strictObject({
        ...graphRun,
        status: z.enum(graphStates),
        durationMs: z.int().min(0),
        nodeCount: z.int().min(1),
        nodesCompleted: z.int().min(0),
        nodesFailed: z.int().min(0),
        nodesSkipped: z.int().min(0),
        cancelReason: z.enum(['manual', 'timeout', 'budget', 'killed']).optional(),
      }),
  }),
  'autonomy:revoked': event({
    category: 'Autonomy',
    visibility: 'admin',
    summary: 'The leases of a root run were revoked.',
    payload: () => z.strictObject({ rootRunId: RootRunId(), revoked: z.int().min(0), timestamp }),
  }),
  'autonomy:killed': event({
    category: 'Autonomy',
    visibility: 'admin',
    summary: 'A root run was stopped at once with everything that belonged to it.',
    payload: () => z.strictObject({ rootRunId: RootRunId(), killed: z.int().min(0), timestamp }),
  }),
  'autonomy:denial_breaker': event({
    category: 'Autonomy',
    visibility: 'owner',
    summary: 'A turn was ended because its calls were denied repeatedly.',
    payload: () => z.strictObject({ agentId: AgentId, rootRunId: RootRunId(), turnId: z.string(), denials: z.int().min(1), timestamp }),
  }),
  'capability:audited': event({
    category: 'Autonomy',
    visibility: 'admin',
    summary: 'A call that needs a capability was allowed or denied; without content.',
    payload: () =>
      z.strictObject({
        agentId: AgentId.nullable().describe('Null when the presented lease is unknown.'),
        capability: z.string().nullable(),
        tool: z.string().optional().describe('`(unknown)` when a script requested an unknown one.'),
        method: z.string().optional().describe('The same for methods.'),
        rootRunId: RootRunId().nullable(),
        runId: SubAgentRunId().optional(),
        leaseId: z.string().optional(),
        parentLeaseId: z.string().optional(),
        decision: z.enum(['allow', 'deny']),
        reason: z.string().max(64).optional(),
        timestamp,
      }),
  }),
  'pipeline:authored': event({
    category: 'Graphs',
    visibility: 'admin',
    summary: 'An agent wrote a graph, valid or not; counts only.',
    payload: () =>
      z.strictObject({
        agentId: AgentId,
        action: z.enum(['define', 'execute']),
        valid: z.boolean(),
        nodeCount: z.int().min(0),
        typedNodeCount: z.int().min(0),
        warningCount: z.int().min(0),
        errorCount: z.int().min(0),
        tier: ModelTier().optional().describe('Capability of the model that wrote it.'),
        timestamp,
      }),
  }),
  'orchestrate:run_summary': event({
    category: 'Tools',
    visibility: 'admin',
    summary: 'A script of the tool `orchestrate` ended; counts only.',
    payload: () =>
      z.strictObject({
        agentId: AgentId,
        runId: z.string(),
        leaseId: z.string(),
        rootRunId: RootRunId(),
        outcome: z.enum(['ok', 'failed']),
        failureClass: z.enum(['timeout', 'stdout_cap', 'nonzero_exit', 'spawn_fail', 'lease_absent', 'killed']).optional(),
        durationMs: z.int().min(0),
        exitCode: z.int().nullable(),
        toolCalls: z.array(
          z.strictObject({ tool: z.string(), capability: z.string().nullable(), decision: z.enum(['allow', 'deny']), count: z.int().min(1) }),
        ),
        resultRefs: z.strictObject({ count: z.int().min(0), bytes: z.int().min(0) }),
        savings: z.strictObject({ estSavedTokens: z.int().min(0), savedRatio: z.number().min(0).max(1) }),
        timestamp,
      }),
  }),
};
