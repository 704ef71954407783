import type { ResultInput } from '@gatehouse/contract';
import { headOf } from '../../../../kernel/cut-text.ts';
import { viewOfWait } from '../../../../runtime/waiting-view.ts';
import type { WaitingRun } from '../../subagents/api.ts';
import { isOver } from '../definition/barrier.ts';
import type { SpecNode } from '../definition/definition.ts';
import type { LiveGraph } from '../run/live-graph.ts';
import { shownTask } from '../nodes/template.ts';
import { type GraphRow, type NodeRow, parseDefinition, specOf, variablesIn } from '../rows.ts';
import type { FoundGraph } from '../store.ts';

type StatusResult = ResultInput<'graph.status'>;
type GraphView = Extract<StatusResult, { executionOrder: unknown }>;
type NodeView = GraphView['nodes'][string];

const shownCharacters = 500;
const variableCharacters = 200;

/** `ownerId` is the principal of a caller that may answer gates. */
export function rowView(
  { id, principalId, label, state, startedAtMs, endedAtMs, nodeCount }: GraphRow,
  live: LiveGraph | undefined,
  ownerId: string | undefined,
) {
  return {
    graphId: id,
    ...(label !== null && { label }),
    status: state,
    ...waiting(live, principalId === ownerId),
    ...(startedAtMs !== null && { startedAt: startedAtMs }),
    ...(endedAtMs !== null && { completedAt: endedAtMs }),
    nodeCount,
  };
}

/** Whether a person is awaited, which only the process that runs the graph knows. */
export function waiting(live: LiveGraph | undefined, isOwn: boolean): { waitsForAnswer?: true; mayAnswer?: true } {
  return live?.waitsForAnswer === true ? { waitsForAnswer: true, ...(isOwn && { mayAnswer: true }) } : {};
}

/** Returns the variables of a run, cut for display; nothing when it has none. */
export function shownVariables(row: Pick<GraphRow, 'variablesJson'>): { variables?: Record<string, string> } {
  const variables = Object.entries(variablesIn(row)).map(([name, value]) => [name, headOf(value, variableCharacters)] as const);
  return variables.length === 0 ? {} : { variables: Object.fromEntries(variables) };
}

/** The caller that reads a graph. */
export interface Reader {
  /** Sees the causes of failures. */
  readonly isAdmin: boolean;
  /** The principal of a caller that may answer gates; agents may not. */
  readonly ownerId: string | undefined;
}

/** Returns the state of a graph: its rows, and what only its process knows; includes causes of failures for admins. */
export function graphView(
  { row, nodes }: FoundGraph,
  live: LiveGraph | undefined,
  waiting: readonly WaitingRun[],
  { isAdmin, ownerId }: Reader,
): GraphView {
  const spec = specOf(row);
  const specs = new Map(spec.nodes.map((node) => [node.id, node]));
  const variables = variablesIn(row);
  // A graph that was loaded but not started has no rows of nodes.
  const rows: readonly NodeRow[] = nodes;
  const count = (state: NodeRow['state']) => rows.filter((node) => node.state === state).length;
  const unpriced = rows.some((node) => node.unpriced === 1);
  return {
    ...rowView(row, live, ownerId),
    isTerminal: row.endedAtMs !== null,
    ...(row.rootRunId !== null && { rootRunId: row.rootRunId }),
    ...shownVariables(row),
    ...(row.cancelReason !== null && { cancelReason: row.cancelReason }),
    executionOrder: spec.nodes.map(({ id }) => id),
    edges: spec.nodes.flatMap(({ id, dependsOn }) => dependsOn.map((from) => ({ from, to: id }))),
    nodes: Object.fromEntries(rows.map((node) => [node.nodeId, nodeView(node, specs.get(node.nodeId), variables, live, waiting, isAdmin)])),
    stats: {
      total: row.nodeCount,
      completed: count('completed'),
      failed: count('failed'),
      skipped: count('skipped'),
      running: count('running'),
      pending: rows.length === 0 ? row.nodeCount : count('pending'),
      tokens: rows.reduce((sum, { tokens }) => sum + tokens, 0),
      cost: unpriced ? null : rows.reduce((sum, { costNano }) => sum + costNano, 0) / 1e9,
    },
  };
}

function nodeView(
  node: NodeRow,
  spec: SpecNode | undefined,
  variables: Readonly<Record<string, string>>,
  live: LiveGraph | undefined,
  waits: readonly WaitingRun[],
  isOwner: boolean,
): NodeView {
  const type = spec?.work?.type;
  const [wait] = waits.filter(({ nodeId }) => nodeId === node.nodeId);
  const now = live?.nodes.get(node.nodeId);
  const runId = now?.runId ?? node.runId;
  const question = live?.questionOf(node.nodeId);
  const { state, output, error, cause, attempt, partial, answer, startedAtMs, endedAtMs } = node;
  return {
    status: state,
    ...(type !== undefined && { type_id: type }),
    ...(spec?.agentId !== undefined && { agentId: spec.agentId }),
    ...(spec !== undefined && { task: shownTask(spec.task, variables) }),
    ...(runId !== null && { runId }),
    ...(output !== null && { output: headOf(output, shownCharacters) }),
    ...(error !== null && { error }),
    ...(isOwner && cause !== null && { cause }),
    ...(now?.progress !== undefined && !isOver(state) && { progress: now.progress }),
    ...(wait !== undefined && !isOver(state) && { waiting: viewOfWait(wait.waiting, isOwner) }),
    ...(node.effectsRefused > 0 && { effectsRefused: node.effectsRefused }),
    ...(startedAtMs !== null && { attempt }),
    ...(partial === 1 && { partial: true }),
    ...(type === 'approval-gate' && state === 'running' && answer === null && { waitsForAnswer: true, ...(question !== undefined && { question }) }),
    ...(startedAtMs !== null && { startedAt: startedAtMs }),
    ...(endedAtMs !== null && { completedAt: endedAtMs }),
    ...(startedAtMs !== null && endedAtMs !== null && { durationMs: Math.max(0, endedAtMs - startedAtMs) }),
    ...(node.tokens > 0 && { tokens: node.tokens, cost: node.unpriced === 1 ? null : node.costNano / 1e9 }),
  };
}

/** Returns a saved definition as it was sent. */
export function definitionView(json: string) {
  const { nodes, edges = [], settings = {} } = parseDefinition(json);
  return { nodes, edges, settings };
}
