import { type GraphEdge, type GraphNode, type GraphNodeType, type GraphSettings, graphTypeConfigs, type Issue } from '@gatehouse/contract';
import type * as z from 'zod';

/** A graph as every method receives it. */
export interface GraphInput {
  readonly nodes: readonly GraphNode[];
  readonly edges?: readonly z.output<ReturnType<typeof GraphEdge>>[] | undefined;
  readonly label?: string | undefined;
  readonly on_failure?: GraphSettings['on_failure'] | undefined;
  readonly timeout_ms?: number | undefined;
  readonly budget?: GraphSettings['budget'];
  readonly settings?: GraphSettings | undefined;
  /** Agent of nodes without one: the agent that a saved graph belongs to. */
  readonly defaultAgentId?: string | undefined;
}

/** The work of a typed node, with the configuration of its type. */
export type NodeWork = {
  [T in GraphNodeType]: { readonly type: T; readonly config: z.output<ReturnType<typeof graphTypeConfigs>[T]> };
}[GraphNodeType];
/** Types whose work is done by runs of agents. */
export type RunWork = Exclude<NodeWork, { type: 'approval-gate' }>;

export interface SpecNode {
  readonly id: string;
  readonly task: string;
  readonly dependsOn: readonly string[];
  readonly barrier: 'all' | 'majority' | 'best-effort';
  readonly contextMode: 'full' | 'summary' | 'refs' | 'none';
  readonly retries: number;
  /** Timeout of each attempt; undefined: that of the graph. */
  readonly timeoutMs: number | undefined;
  readonly maxSteps: number | undefined;
  readonly model: string | undefined;
  /** The agent of an untyped node; typed nodes name their agents in the configuration. */
  readonly agentId: string | undefined;
  /** Undefined for a single run with the task. */
  readonly work: NodeWork | undefined;
}

/** A valid graph, with nodes in an order in which they could run sequentially. */
export interface GraphSpec {
  readonly nodes: readonly SpecNode[];
  readonly label: string | undefined;
  readonly onFailure: NonNullable<GraphSettings['on_failure']>;
  readonly timeoutMs: number;
  readonly budget: GraphSettings['budget'];
}

const defaultGraphMs = 1_500_000;
const minuteMs = 60_000;
/** Default timeout of a node by type. */
const typeTimeoutMs: Readonly<Record<Exclude<GraphNodeType, 'approval-gate'>, number>> = {
  agent: 5 * minuteMs,
  debate: 10 * minuteMs,
  vote: 5 * minuteMs,
  refine: 5 * minuteMs,
  collaborate: 5 * minuteMs,
  'map-reduce': 10 * minuteMs,
};

/** Expected shapes of `type_config`, for error messages. */
const shapes: Readonly<Record<GraphNodeType, string>> = {
  agent: '{ agent: agent id, model?: model, max_steps?: 1 to 1000 }',
  debate: '{ agents: [2 to 10 agent ids], rounds?: 1 to 5 (2), synthesizer?: agent id }',
  vote: '{ voters: [2 to 10 agent ids], prompt_suffix?: text, verdict_format?: text, min_voters?: 1 to 10 }',
  refine: '{ reviewers: [2 to 10 agent ids] }',
  collaborate: '{ agents: [2 to 10 agent ids], rounds?: 1 to 3 (1) }',
  'map-reduce': '{ mappers: [2 to 10 of { agent: agent id, task_suffix?: text }], reducer: agent id, reducer_prompt?: text }',
  'approval-gate': '{ message?: text, timeout_minutes?: 1 to 1440 (60) }',
};

/** Returns the graph, or its errors with the field of each. */
export function readDefinition(input: GraphInput): { readonly spec: GraphSpec; readonly issues?: never } | { readonly issues: readonly Issue[] } {
  const issues: Issue[] = [];
  const dependsOn = dependenciesOf(input, issues);
  const nodes = input.nodes.map((node, index) => readNode(node, index, dependsOn.get(node.node_id) ?? [], issues));
  checkAgainstOthers(nodes, issues);
  if (issues.length > 0) return { issues };
  const order = orderOf(nodes);
  if ('cycle' in order) return { issues: [{ path: 'nodes', message: `cycle: ${order.cycle.join(' → ')}; a graph must not contain a cycle` }] };
  const { settings = {} } = input;
  return {
    spec: {
      nodes: order.nodes,
      label: input.label,
      onFailure: input.on_failure ?? settings.on_failure ?? 'fail-fast',
      timeoutMs: input.timeout_ms ?? settings.timeout_ms ?? defaultGraphMs + askingMs(order.nodes),
      budget: input.budget ?? settings.budget,
    },
  };
}

function dependenciesOf({ nodes, edges = [] }: GraphInput, issues: Issue[]): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, Set<string>>();
  for (const [index, { node_id: id, depends_on: from = [] }] of nodes.entries()) {
    if (found.has(id)) issues.push({ path: `nodes.${index}.node_id`, message: `duplicate_node_id: a node "${id}" already exists` });
    else found.set(id, new Set(from));
  }
  for (const [index, { from, to }] of edges.entries()) {
    const of = found.get(to);
    if (of === undefined || !found.has(from)) {
      const [end, missing] = of === undefined ? ['to', to] : ['from', from];
      issues.push({ path: `edges.${index}.${end}`, message: `missing_dependency: no node "${missing}" exists` });
    } else of.add(from);
  }
  return new Map([...found].map(([id, from]) => [id, [...from]]));
}

function readNode(node: GraphNode, index: number, dependsOn: readonly string[], issues: Issue[]): SpecNode {
  const work = readWork(node, index, issues);
  return {
    id: node.node_id,
    task: node.task,
    dependsOn,
    barrier: node.barrier_mode ?? 'all',
    contextMode: node.context_mode ?? 'full',
    retries: node.retries ?? 0,
    timeoutMs: node.timeout_ms ?? (work === undefined ? undefined : timeoutOf(work)),
    maxSteps: node.max_steps,
    model: node.model,
    agentId: node.agent,
    work,
  };
}

const timeoutOf = (work: NodeWork) => (work.type === 'approval-gate' ? work.config.timeout_minutes * minuteMs : typeTimeoutMs[work.type]);

function readWork(node: GraphNode, index: number, issues: Issue[]): NodeWork | undefined {
  const { type_id: type, type_config: config } = node;
  if (type === undefined) {
    if (config !== undefined) issues.push({ path: `nodes.${index}.type_config`, message: 'only allowed for a node with a type_id' });
    return undefined;
  }
  const parsed = graphTypeConfigs()[type].safeParse(config ?? {});
  // A type and its own configuration; TypeScript cannot follow the pair through the table.
  if (parsed.success) return { type, config: parsed.data } as NodeWork;
  for (const issue of parsed.error.issues)
    issues.push({
      path: ['nodes', index, 'type_config', ...issue.path].join('.'),
      message: `${issue.message}; expected for type_id "${type}": ${shapes[type]}`,
    });
  return undefined;
}

function checkAgainstOthers(nodes: readonly SpecNode[], issues: Issue[]): void {
  const ids = new Set(nodes.map(({ id }) => id));
  for (const [index, { id, dependsOn, work }] of nodes.entries()) {
    const path = `nodes.${index}.depends_on`;
    for (const from of dependsOn) {
      if (from === id) issues.push({ path, message: `self_dependency: node "${id}" depends on itself` });
      else if (!ids.has(from)) issues.push({ path, message: `missing_dependency: no node "${from}" exists` });
    }
    if (work?.type === 'vote' && (work.config.min_voters ?? 0) > work.config.voters.length)
      issues.push({ path: `nodes.${index}.type_config.min_voters`, message: `expected at most ${work.config.voters.length}, the number of voters` });
  }
}

/** Extends the graph timeout by the time that people may take to answer. */
const askingMs = (nodes: readonly SpecNode[]) =>
  nodes.reduce((sum, { work, timeoutMs }) => sum + (work?.type === 'approval-gate' ? (timeoutMs ?? 0) : 0), 0);

/** Sorts nodes after their dependencies, otherwise in the order they were sent; or returns a cycle. */
function orderOf(nodes: readonly SpecNode[]): { readonly nodes: readonly SpecNode[] } | { readonly cycle: readonly string[] } {
  const placed = new Set<string>();
  const order: SpecNode[] = [];
  while (order.length < nodes.length) {
    const next = nodes.find(({ id, dependsOn }) => !placed.has(id) && dependsOn.every((from) => placed.has(from)));
    if (next === undefined) return { cycle: cycleIn(nodes.filter(({ id }) => !placed.has(id))) };
    placed.add(next.id);
    order.push(next);
  }
  return { nodes: order };
}

/** Finds a cycle among nodes that each depend on another one of them. */
function cycleIn(nodes: readonly SpecNode[]): readonly string[] {
  const path: string[] = [];
  let at = nodes[0];
  while (at !== undefined && !path.includes(at.id)) {
    path.push(at.id);
    const from = at.dependsOn;
    at = nodes.find(({ id }) => from.includes(id));
  }
  // Found against the direction of the edges, returned along it.
  const loop = at === undefined ? path : path.slice(path.indexOf(at.id));
  return [...loop, ...loop.slice(0, 1)].toReversed();
}

/** Returns the nodes that nothing else depends on: their outputs are the result of the graph. */
export function leavesOf(nodes: readonly SpecNode[]): readonly SpecNode[] {
  return nodes.filter(({ id }) => !nodes.some(({ dependsOn }) => dependsOn.includes(id)));
}

/** Returns the agents that work in a node; undefined means the default agent. */
export function agentsOf({ work, agentId }: SpecNode): readonly (string | undefined)[] {
  switch (work?.type) {
    case undefined:
      return [agentId];
    case 'agent':
      return [work.config.agent];
    case 'debate':
      return [...work.config.agents, ...(work.config.synthesizer === undefined ? [] : [work.config.synthesizer])];
    case 'vote':
      return work.config.voters;
    case 'refine':
      return work.config.reviewers;
    case 'collaborate':
      return work.config.agents;
    case 'map-reduce':
      return [...work.config.mappers.map(({ agent }) => agent), work.config.reducer];
    case 'approval-gate':
      return [];
  }
}
