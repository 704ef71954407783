import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import {
  GraphEdge,
  graphDefinition,
  GraphId,
  GraphNode,
  graphNodeStates,
  graphNodeTypes,
  GraphSettings,
  graphStates,
  GraphWarning,
  NodeId,
} from '../shared/graph.ts';
import { pageParams, pageResult } from '../shared/paging.ts';
import { AgentId } from '../shared/session.ts';
import { RootRunId, SubAgentRunId } from '../shared/sub-agent.ts';
import { EpochMs } from '../shared/turn.ts';
import { EffectsRefused, FailureCause, WorkWaiting } from '../shared/waiting.ts';

const graphId = 'gr_00000000-0000-7000-8000-000000000001';
const id = 'sg_00000000-0000-7000-8000-000000000001';
const nodes = [
  { node_id: 'research', task: 'Collect facts about ${TOPIC}.', agent: 'default' },
  { node_id: 'report', task: 'Write a report from {{research.result}}.', agent: 'default', depends_on: ['research'] },
];

/** Names a graph that ran or runs: by its id, or by the label of the newest run that has it. */
const AnyGraph = once(() => z.string().min(1).max(200));
const SavedGraphId = once(() => z.string().regex(/^sg_[0-9a-f-]{36}$/, 'expected sg_ followed by a UUID'));

const times = once(() => ({ startedAt: EpochMs.optional(), completedAt: EpochMs.optional() }));
const NodeView = once(() =>
  z
    .strictObject({
      status: z.enum(graphNodeStates),
      type_id: z.enum(graphNodeTypes).optional(),
      agentId: AgentId.optional().describe('The agent of a node that one agent runs.'),
      task: z
        .string()
        .optional()
        .describe('Task with its variables filled in; results of other nodes stay `{{node.result}}`. At most 2000 characters.'),
      runId: SubAgentRunId().optional().describe('The sub-agent run of the node, the latest when it has several.'),
      output: z.string().optional().describe('At most 500 characters, cut between code points.'),
      error: z.string().optional(),
      cause: FailureCause().optional(),
      waiting: WorkWaiting().optional().describe('What a run of the node waits for.'),
      effectsRefused: EffectsRefused().optional(),
      progress: z.string().optional().describe('One line for people, of a typed node that runs.'),
      attempt: z.int().min(1).optional(),
      partial: z.boolean().optional().describe('The node was stopped early and has a partial output.'),
      waitsForAnswer: z.boolean().optional().describe('A pending approval gate; answer it with `graph.answer`.'),
      question: z.string().optional().describe('Question of a pending gate, at most 8000 characters.'),
      ...times(),
      durationMs: z.int().min(0).optional(),
      tokens: z.int().min(0).optional(),
      cost: z.number().min(0).nullable().optional().describe('US dollars; null when the price of a call is unknown.'),
    })
    .meta({ id: 'GraphNodeView' }),
);

const waitsForAnswer = once(() => z.literal(true).optional().describe('One of its approval gates is waiting for the answer of a person.'));
const mayAnswer = once(() => z.literal(true).optional().describe('Set with `waitsForAnswer` when the caller is the one who may answer.'));

const Variables = once(() =>
  z.record(z.string(), z.string()).describe('Values of the variables that the run was started with, at most 200 characters each.'),
);

const Row = once(() =>
  z.strictObject({
    graphId: GraphId(),
    label: z.string().optional(),
    status: z
      .enum(graphStates)
      .describe('`completed`: it ended, and a node that nothing depends on has a result; `pending`: it was loaded but not started.'),
    waitsForAnswer: waitsForAnswer(),
    mayAnswer: mayAnswer(),
    ...times(),
    nodeCount: z.int().min(1),
  }),
);

const GraphView = once(() =>
  z
    .strictObject({
      ...Row().shape,
      isTerminal: z.boolean(),
      rootRunId: RootRunId().optional(),
      variables: Variables().optional(),
      cancelReason: z.enum(['manual', 'timeout', 'budget', 'killed']).optional(),
      executionOrder: z.array(NodeId()),
      edges: z.array(GraphEdge()),
      nodes: z.record(NodeId(), NodeView()),
      stats: z.strictObject({
        total: z.int(),
        completed: z.int(),
        failed: z.int(),
        skipped: z.int(),
        running: z.int(),
        pending: z.int(),
        tokens: z.int().min(0),
        cost: z.number().min(0).nullable().describe('US dollars; null when the price of a call is unknown.'),
      }),
    })
    .meta({ id: 'GraphView' }),
);

const GraphList = once(() =>
  z
    .strictObject({
      graphs: z.array(Row()),
      concurrency: z.strictObject({ globalActiveSubAgents: z.int().min(0), maxGlobalSubAgents: z.int().min(1), queueDepth: z.int().min(0) }),
    })
    .meta({ id: 'GraphList' }),
);

const savedFields = once(() => ({ id: SavedGraphId(), label: z.string(), createdAt: EpochMs, updatedAt: EpochMs, nodeCount: z.int().min(1) }));
const runFields = once(() => ({ graphId: GraphId(), name: z.string(), status: z.enum(graphStates), date: z.iso.datetime() }));

const definition = once(() => z.strictObject(graphDefinition()));

/** Graphs of agents (json-rpc.md §4 graph). Their owners and admins may see a run. */
export const graph = {
  'graph.define': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Validates a graph and returns its execution order; stores nothing.',
    description: 'An invalid graph is refused with `data.issues`; for the configuration of a typed node they contain the expected shape.',
    params: () => definition(),
    result: () =>
      z.strictObject({
        valid: z.literal(true),
        nodeCount: z.int().min(1),
        executionOrder: z.array(NodeId()),
        label: z.string().optional(),
        warnings: z.array(GraphWarning()),
        userVariables: z.array(z.string()).describe('Names of the variables that the tasks use.'),
      }),
    examples: [
      {
        params: { nodes },
        result: { valid: true, nodeCount: 2, executionOrder: ['research', 'report'], warnings: [], userVariables: ['TOPIC'] },
      },
    ],
    since: '0.1.0',
  }),
  'graph.execute': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Starts a graph in the background and returns its id at once.',
    description:
      'The run is stored before the answer and resumes after a restart. Pass either `nodes`, or the `graphId` that `graph.load` returned. A graph with approval gates needs ' +
      '`announceChannelType` and `announceChannelId`: `gateway`, and `inbox` or the reference of a conversation of the caller; or the type of a configured ' +
      'channel, and `NAME/ID` of a conversation on it.',
    params: () =>
      z
        .strictObject({
          ...graphDefinition(),
          nodes: graphDefinition().nodes.optional(),
          graphId: GraphId().optional(),
          variables: z
            .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/), z.string().max(20_000))
            .refine((all) => Object.keys(all).length <= 100, 'expected at most 100 variables')
            .default({}),
          node_progress: z.boolean().default(false).describe('Announces the end of each node too.'),
          announceChannelType: z.string().min(1).max(64).optional(),
          announceChannelId: z.string().min(1).max(256).optional(),
        })
        .refine((one) => (one.nodes === undefined) !== (one.graphId === undefined), { message: 'expected either nodes or graphId', path: ['nodes'] }),
    result: () =>
      z.strictObject({
        graphId: GraphId(),
        async: z.literal(true),
        nodeCount: z.int().min(1),
        label: z.string().optional(),
        rootRunId: RootRunId(),
        hint: z.string(),
        warnings: z.array(GraphWarning()),
      }),
    errors: ['not_found', 'denied', 'precondition_failed', 'rate_limited'],
    examples: [
      {
        params: { nodes, variables: { TOPIC: 'tides' } },
        result: { graphId, async: true, nodeCount: 2, rootRunId: 'root-rpc-1', hint: 'Ask graph.status for its progress.', warnings: [] },
      },
    ],
    since: '0.1.0',
  }),
  'graph.retry': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Runs an ended graph again from a node; nodes that completed and do not depend on it keep their results.',
    description:
      'It is another run, with the definition and variables of the first and the authority of the caller. Without `nodeId` all nodes run again that did not complete, and what depends on them. Only the owner of the graph may do it. Gates among these nodes ask again, and need `announceChannelType` and `announceChannelId` as in `graph.execute`.',
    params: () =>
      z.strictObject({
        graphId: GraphId(),
        nodeId: z.string().min(1).max(64).optional().describe('The first node that runs again.'),
        announceChannelType: z.string().min(1).max(64).optional(),
        announceChannelId: z.string().min(1).max(256).optional(),
      }),
    result: () =>
      z.strictObject({
        graphId: GraphId().describe('Of the new run.'),
        rootRunId: RootRunId(),
        nodeCount: z.int().min(1),
        kept: z.int().min(0).describe('Nodes that keep their results.'),
        warnings: z.array(GraphWarning()),
      }),
    errors: ['not_found', 'denied', 'precondition_failed', 'rate_limited'],
    examples: [{ params: { graphId, nodeId: 'write' }, result: { graphId, rootRunId: 'root-rpc-1', nodeCount: 2, kept: 1, warnings: [] } }],
    since: '0.1.0',
  }),
  'graph.status': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns the status of one graph, or lists the recent ones.',
    params: () =>
      z.strictObject({
        graphId: AnyGraph().optional(),
        recentMinutes: z.int().min(1).max(10_080).optional().describe('Without `graphId`: graphs that ran within so many minutes; 60 when absent.'),
      }),
    result: () => z.union([GraphView(), GraphList()]),
    errors: ['not_found'],
    examples: [{ params: {}, result: { graphs: [], concurrency: { globalActiveSubAgents: 0, maxGlobalSubAgents: 20, queueDepth: 0 } } }],
    since: '0.1.0',
  }),
  'graph.outputs': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns the outputs of the nodes of a graph, at most 12000 characters each.',
    params: () => z.strictObject({ graphId: AnyGraph() }),
    result: () =>
      z.strictObject({
        graphId: GraphId(),
        outputs: z.record(NodeId(), z.string().nullable()),
        source: z.enum(['memory', 'disk']).describe('`memory` while the graph runs and shortly after, then `disk`: the database.'),
      }),
    errors: ['not_found'],
    examples: [{ params: { graphId }, result: { graphId, outputs: { research: 'Tides come twice a day.', report: null }, source: 'memory' } }],
    since: '0.1.0',
  }),
  'graph.cancel': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Cancels a graph: no further node starts, running nodes finish.',
    params: () => z.strictObject({ graphId: AnyGraph() }),
    result: () => z.strictObject({ cancelled: z.literal(true), graphId: GraphId() }),
    errors: ['not_found', 'precondition_failed'],
    examples: [{ params: { graphId }, result: { cancelled: true, graphId } }],
    since: '0.1.0',
  }),
  'graph.answer': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Answers an approval gate of a graph with the text of a person.',
    description:
      'Only the owner of the graph may answer. Refusing terms outweigh approving ones. An answer approves when it says nothing else: one with a condition or a question, ' +
      'with other terms or in another language, is rejected and the gate stays pending.',
    params: () => z.strictObject({ graphId: AnyGraph(), nodeId: NodeId(), answer: z.string().min(1).max(2000) }),
    result: () => z.strictObject({ graphId: GraphId(), nodeId: NodeId(), approved: z.boolean() }),
    errors: ['not_found', 'precondition_failed'],
    examples: [{ params: { graphId, nodeId: 'gate', answer: 'yes, go ahead' }, result: { graphId, nodeId: 'gate', approved: true } }],
    since: '0.1.0',
  }),
  'graph.save': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Validates and saves a graph under a name; replaces the graph with this `id`, if given.',
    params: () =>
      z.strictObject({
        ...graphDefinition(),
        label: z.string().min(1).max(200),
        id: SavedGraphId().optional(),
        agentId: AgentId.optional().describe('Runs nodes without an agent when the graph is loaded and executed.'),
      }),
    result: () => z.strictObject({ id: SavedGraphId(), saved: z.literal(true), warnings: z.array(GraphWarning()) }),
    errors: ['not_found'],
    examples: [{ params: { label: 'Report', nodes }, result: { id, saved: true, warnings: [] } }],
    since: '0.1.0',
  }),
  'graph.load': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: 'Returns a saved graph with a new `graphId`, which `graph.execute` accepts within 24 hours.',
    params: () => z.strictObject({ id: SavedGraphId() }),
    result: () =>
      z.strictObject({
        ...savedFields(),
        agentId: AgentId.optional(),
        nodes: z.array(GraphNode()),
        edges: z.array(GraphEdge()),
        settings: GraphSettings(),
        graphId: GraphId(),
        warnings: z.array(GraphWarning()),
      }),
    errors: ['not_found'],
    examples: [
      {
        params: { id },
        result: {
          id,
          label: 'Report',
          createdAt: 1790000000000,
          updatedAt: 1790000000000,
          nodeCount: 2,
          nodes,
          edges: [],
          settings: {},
          graphId,
          warnings: [],
        },
      },
    ],
    since: '0.1.0',
  }),
  'graph.list': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Lists saved graphs, sorted by name.',
    params: () => z.strictObject({ ...pageParams({ defaultLimit: 50, maxLimit: 200 }) }),
    result: () =>
      z.strictObject({
        entries: z.array(z.strictObject({ ...savedFields(), name: z.string(), agentId: AgentId.optional() })),
        ...pageResult,
      }),
    examples: [
      {
        params: {},
        result: {
          entries: [{ id, label: 'Report', name: 'Report', createdAt: 1790000000000, updatedAt: 1790000000000, nodeCount: 2 }],
          total: 1,
          offset: 0,
          limit: 50,
          hasMore: false,
        },
      },
    ],
    since: '0.1.0',
  }),
  'graph.delete': method({
    scope: 'rpc',
    risk: 'destructive',
    summary: 'Deletes a saved graph; its runs stay.',
    params: () => z.strictObject({ id: SavedGraphId() }),
    result: () => z.strictObject({ id: SavedGraphId(), deleted: z.literal(true) }),
    errors: ['not_found'],
    examples: [{ params: { id }, result: { id, deleted: true } }],
    since: '0.1.0',
  }),
  'graph.runs': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Lists the stored runs, newest first.',
    params: () => z.strictObject({ ...pageParams({ defaultLimit: 50, maxLimit: 200 }) }),
    result: () =>
      z.strictObject({
        runs: z.array(
          z.strictObject({
            ...runFields(),
            waitsForAnswer: waitsForAnswer(),
            mayAnswer: mayAnswer(),
            agentId: AgentId,
            rootRunId: RootRunId().optional(),
            variables: Variables().optional(),
            ...times(),
            tokens: z.int().min(0),
            cost: z.number().min(0).nullable().describe('US dollars; null when the price of a call is unknown.'),
            result: z.string().optional().describe('Beginning of the output, or of the error, of the node that ended last, at most 300 characters.'),
            nodeCount: z.int().min(1),
            fileCount: z.int().min(0).describe('Number of stored outputs.'),
            cause: FailureCause().optional().describe('Cause of the last failed node; only for tokens with scope `admin`.'),
          }),
        ),
        ...pageResult,
      }),
    examples: [
      {
        params: {},
        result: {
          runs: [
            {
              graphId,
              name: 'Report',
              status: 'completed',
              date: '2026-01-31T08:00:00.000Z',
              agentId: 'default',
              variables: { TOPIC: 'tides' },
              tokens: 1200,
              cost: 0.01,
              result: 'Tides come twice a day.',
              nodeCount: 2,
              fileCount: 2,
            },
          ],
          total: 1,
          offset: 0,
          limit: 50,
          hasMore: false,
        },
      },
    ],
    since: '0.1.0',
  }),
  'graph.runDetail': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns one run with the complete outputs of its nodes.',
    params: () => z.strictObject({ graphId: GraphId() }),
    result: () =>
      z.strictObject({
        ...runFields(),
        definition: z
          .strictObject({ nodes: z.array(GraphNode()), edges: z.array(GraphEdge()), settings: GraphSettings() })
          .describe('What ran, as `graph.execute` accepts it.'),
        variables: z.record(z.string(), z.string()),
        nodes: z.array(
          z.strictObject({
            nodeId: NodeId(),
            status: z.enum(graphNodeStates),
            output: z.string().nullable(),
            error: z.string().optional(),
            cause: FailureCause().optional(),
            artifacts: z.array(z.strictObject({ filename: z.string(), content: z.string() })),
          }),
        ),
      }),
    errors: ['not_found'],
    examples: [
      {
        params: { graphId },
        result: {
          graphId,
          name: 'Report',
          status: 'completed',
          date: '2026-01-31T08:00:00.000Z',
          definition: { nodes, edges: [], settings: {} },
          variables: { TOPIC: 'tides' },
          nodes: [
            {
              nodeId: 'research',
              status: 'completed',
              output: 'Tides come twice a day.',
              artifacts: [{ filename: 'research.txt', content: 'Tides come twice a day.' }],
            },
          ],
        },
      },
    ],
    since: '0.1.0',
  }),
  'graph.deleteRun': method({
    scope: 'rpc',
    risk: 'destructive',
    summary: 'Deletes an ended run with its outputs.',
    params: () => z.strictObject({ graphId: GraphId() }),
    result: () => z.strictObject({ graphId: GraphId(), deleted: z.literal(true) }),
    errors: ['not_found', 'precondition_failed'],
    examples: [{ params: { graphId }, result: { graphId, deleted: true } }],
    since: '0.1.0',
  }),
};
