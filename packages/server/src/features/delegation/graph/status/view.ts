import type { ResultInput } from '@gatehouse/contract';
import { headOf } from '../../../../kernel/cut-text.ts';
import { viewOfWait } from '../../../../runtime/waiting-view.ts';
import type { WaitingRun } from '../../subagents/api.ts';
import { isOver } from '../definition/barrier.ts';
import type { LiveGraph } from '../run/live-graph.ts';
import { type GraphRow, type NodeRow, parseDefinition, specOf } from '../rows.ts';
import type { FoundGraph } from '../store.ts';

type StatusResult = ResultInput<'graph.status'>;
type GraphView = Extract<StatusResult, { executionOrder: unknown }>;
type NodeView = GraphView['nodes'][string];

const shownCharacters = 500;

export function rowView({ id, label, state, startedAtMs, endedAtMs, nodeCount }: GraphRow, live: LiveGraph | undefined) {
  return {
    graphId: id,
    ...(label !== null && { label }),
    status: state,
    ...waiting(live),
    ...(startedAtMs !== null && { startedAt: startedAtMs }),
    ...(endedAtMs !== null && { completedAt: endedAtMs }),
    nodeCount,
  };
}

/** Whether a person is awaited, which only the process that runs the graph knows. */
export function waiting(live: LiveGraph | undefined): { waitsForAnswer?: true } {
  return live?.waitsForAnswer === true ? { waitsForAnswer: true } : {};
}

/** Returns the state of a graph: its rows, and what only its process knows; includes causes of failures for owners. */
export function graphView({ row, nodes }: FoundGraph, live: LiveGraph | undefined, waiting: readonly WaitingRun[], isOwner: boolean): GraphView {
  const spec = specOf(row);
  const types = new Map(spec.nodes.map(({ id, work }) => [id, work?.type]));
  // A graph that was loaded but not started has no rows of nodes.
  const rows: readonly NodeRow[] = nodes;
  const count = (state: NodeRow['state']) => rows.filter((node) => node.state === state).length;
  const unpriced = rows.some((node) => node.unpriced === 1);
  return {
    ...rowView(row, live),
    isTerminal: row.endedAtMs !== null,
    ...(row.rootRunId !== null && { rootRunId: row.rootRunId }),
    ...(row.cancelReason !== null && { cancelReason: row.cancelReason }),
    executionOrder: spec.nodes.map(({ id }) => id),
    edges: spec.nodes.flatMap(({ id, dependsOn }) => dependsOn.map((from) => ({ from, to: id }))),
    nodes: Object.fromEntries(rows.map((node) => [node.nodeId, nodeView(node, types.get(node.nodeId), live, waiting, isOwner)])),
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

function nodeView(node: NodeRow, type: NodeView['type_id'], live: LiveGraph | undefined, waits: readonly WaitingRun[], isOwner: boolean): NodeView {
  const [wait] = waits.filter(({ nodeId }) => nodeId === node.nodeId);
  const now = live?.nodes.get(node.nodeId);
  const runId = now?.runId ?? node.runId;
  const question = live?.questionOf(node.nodeId);
  const { state, output, error, cause, attempt, partial, answer, startedAtMs, endedAtMs } = node;
  return {
    status: state,
    ...(type !== undefined && { type_id: type }),
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
  };
}

/** Returns a saved definition as it was sent. */
export function definitionView(json: string) {
  const { nodes, edges = [], settings = {} } = parseDefinition(json);
  return { nodes, edges, settings };
}
