import * as z from 'zod';
import { once } from '../once.ts';
import { ModelName } from './agent-config.ts';
import { AgentId } from './session.ts';

export const GraphId = once(() =>
  z
    .string()
    .regex(/^gr_[0-9a-f-]{36}$/, 'expected gr_ followed by a UUID')
    .meta({ id: 'GraphId' }),
);

export const NodeId = once(() =>
  z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, 'expected 1 to 64 letters, digits, "_" or "-", beginning with a letter or digit')
    .meta({ id: 'GraphNodeId' }),
);

export const graphNodeTypes = ['agent', 'debate', 'vote', 'refine', 'collaborate', 'map-reduce', 'approval-gate'] as const;
export type GraphNodeType = (typeof graphNodeTypes)[number];

/** Nodes of one graph. */
export const maxGraphNodes = 20;

const Task = once(() => z.string().min(1).max(20_000));
const agents = (least: number) => z.array(AgentId).min(least).max(10);

/** `type_config` by `type_id`; a type that is not listed here does not exist. */
export const graphTypeConfigs = once(
  () =>
    ({
      agent: z.strictObject({ agent: AgentId, model: ModelName.optional(), max_steps: z.int().min(1).max(1000).optional() }),
      debate: z.strictObject({
        agents: agents(2).describe('Speak in turn, each seeing the earlier contributions.'),
        rounds: z.int().min(1).max(5).default(2),
        synthesizer: AgentId.optional().describe('Writes the output from the debate; without it the output is the transcript.'),
      }),
      vote: z.strictObject({
        voters: agents(2).describe('Answer in parallel, without seeing each other.'),
        prompt_suffix: z.string().max(4000).optional(),
        verdict_format: z.string().max(1000).optional().describe('Required form of each answer; passed to the voters.'),
        min_voters: z.int().min(1).max(10).optional().describe('Minimum number of voters that must answer; all when absent.'),
      }),
      refine: z.strictObject({ reviewers: agents(2).describe('The first does the task, each further one improves the previous text.') }),
      collaborate: z.strictObject({ agents: agents(2), rounds: z.int().min(1).max(3).default(1) }),
      'map-reduce': z.strictObject({
        mappers: z
          .array(z.strictObject({ agent: AgentId, task_suffix: z.string().max(4000).optional() }))
          .min(2)
          .max(10),
        reducer: AgentId,
        reducer_prompt: z.string().max(4000).optional(),
      }),
      'approval-gate': z.strictObject({
        message: z.string().max(4000).optional(),
        timeout_minutes: z.int().min(1).max(1440).default(60),
      }),
    }) as const satisfies Record<GraphNodeType, z.ZodType>,
);

/** A node in a request (json-rpc.md §2.5). `type_config` is parsed according to its type. */
export const GraphNode = once(() =>
  z
    .strictObject({
      node_id: NodeId(),
      task: Task().describe('`{{other.result}}` is the result of a dependency, `${NAME}` a variable; missing values leave a visible marker.'),
      depends_on: z.array(NodeId()).max(maxGraphNodes).optional(),
      agent: AgentId.optional().describe(
        'When absent, the agent that starts the graph, otherwise the default agent; ignored by types that name their agents.',
      ),
      model: ModelName.optional(),
      timeout_ms: z.int().min(1000).max(86_400_000).optional(),
      max_steps: z.int().min(1).max(1000).optional(),
      barrier_mode: z
        .enum(['all', 'majority', 'best-effort'])
        .optional()
        .describe('Dependencies that must have completed once all have ended: each (default), more than half, at least one.'),
      retries: z
        .int()
        .min(0)
        .max(3)
        .optional()
        .describe('Retries after a failure, after 1, 2, 4 … seconds; 0 when absent. An approval gate asks only once.'),
      type_id: z.enum(graphNodeTypes).optional(),
      type_config: z.record(z.string(), z.unknown()).optional(),
      context_mode: z
        .enum(['full', 'summary', 'refs', 'none'])
        .optional()
        .describe(
          'How the node receives the results of its dependencies: in full (default); as summaries by the operation model of the agent; as references to read with the tool `node_result`; not at all.',
        ),
    })
    .meta({ id: 'GraphNode' }),
);
export type GraphNode = z.output<ReturnType<typeof GraphNode>>;

/** An edge; equivalent to `from` in the `depends_on` of `to`. */
export const GraphEdge = once(() => z.strictObject({ from: NodeId(), to: NodeId() }).meta({ id: 'GraphEdge' }));

export const GraphSettings = once(() =>
  z
    .strictObject({
      on_failure: z
        .enum(['fail-fast', 'continue'])
        .optional()
        .describe('`fail-fast` (when absent): dependents of a failed node are skipped regardless of their barrier.'),
      timeout_ms: z
        .int()
        .min(1000)
        .max(172_800_000)
        .optional()
        .describe('Timeout of the whole run; when absent 1500000 plus the timeouts of its approval gates.'),
      budget: z
        .strictObject({ maxTokens: z.int().min(1).optional(), maxCost: z.number().min(0.000_001).optional() })
        .optional()
        .describe('Tokens and US dollars of the whole run; once exceeded, nothing more starts.'),
    })
    .meta({ id: 'GraphSettings' }),
);
export type GraphSettings = z.output<ReturnType<typeof GraphSettings>>;

/** The definition of a graph, in every method that takes one. */
export const graphDefinition = once(() => ({
  nodes: z.array(GraphNode()).min(1).max(maxGraphNodes),
  edges: z
    .array(GraphEdge())
    .max(maxGraphNodes * maxGraphNodes)
    .optional(),
  label: z.string().min(1).max(200).optional(),
  on_failure: GraphSettings().shape.on_failure,
  timeout_ms: GraphSettings().shape.timeout_ms,
  budget: GraphSettings().shape.budget,
  settings: GraphSettings().optional().describe('The same settings as a group; those next to `nodes` take precedence.'),
}));

export const graphWarningTypes = [
  'unresolved_template',
  'unresolved_variable',
  'orphan_node',
  'barrier_mode_low_deps',
  'no_agent_id',
  'typed_node_agentid_ignored',
  'typed_node_expensive_retry',
  'typed_node_approval_retry',
  'information_bottleneck',
] as const;

export const GraphWarning = once(() =>
  z
    .strictObject({ nodeId: NodeId().optional(), type: z.enum(graphWarningTypes), message: z.string(), fix: z.string().describe('How to fix it.') })
    .meta({ id: 'GraphWarning' }),
);
export type GraphWarning = z.output<ReturnType<typeof GraphWarning>>;

export const graphStates = ['pending', 'running', 'completed', 'failed', 'cancelled'] as const;
export type GraphState = (typeof graphStates)[number];
export const graphNodeStates = ['pending', 'running', 'completed', 'failed', 'skipped'] as const;
export type GraphNodeState = (typeof graphNodeStates)[number];
