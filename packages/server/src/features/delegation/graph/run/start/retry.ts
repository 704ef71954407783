import { AppError } from '../../../../../kernel/app-error.ts';
import { type CallContext, ownerOf } from '../../../../../kernel/call-context.ts';
import type { HandlersOf } from '../../../../../kernel/handlers.ts';
import type { GraphSpec } from '../../definition/definition.ts';
import { type NodeRow, parseDefinition, specOf, variablesIn } from '../../rows.ts';
import { findVisible } from '../../status/found.ts';
import { notFound } from '../../status/reach.ts';
import type { NodeChange } from '../../store.ts';
import type { createStart, StartDeps } from './start.ts';

interface RetryDeps extends Pick<StartDeps, 'db'> {
  readonly start: ReturnType<typeof createStart>;
  /** Throws when the calling agent may not change graphs. */
  readonly admitChange: (call: CallContext) => void;
}

/** `graph.retry`: starts what an ended graph did not complete, or a part of it, with the results of the other nodes. */
export function createRetry({ db, start, admitChange }: RetryDeps): HandlersOf<'graph.retry'> {
  return {
    'graph.retry': async ({ graphId, nodeId, ...announce }, call) => {
      admitChange(call);
      const { row, nodes } = await findVisible(db, graphId, call);
      // A caller that sees all graphs may still start only its own.
      if (row.id !== graphId || row.principalId !== ownerOf(call)) throw notFound();
      if (row.endedAtMs === null) throw new AppError('precondition_failed', `The graph is ${row.state}; only one that has ended can run again`);
      const spec = specOf(row);
      if (nodeId !== undefined && !spec.nodes.some(({ id }) => id === nodeId))
        throw new AppError('not_found', `The graph has no node "${nodeId}"`, { param: 'nodeId' });
      const kept = keptNodes(spec, nodes, nodeId);
      if (kept.length === nodes.length)
        throw new AppError('precondition_failed', 'All nodes have completed; name the first that is to run again', { param: 'nodeId' });
      const { settings, ...definition } = parseDefinition(row.definitionJson);
      const input = { ...definition, settings };
      // Results that another agent wrote are text from outside for the calling one.
      const facts = { tainted: call.agentCaller !== undefined, retried: { input, kept: kept.map(toKept) } };
      const params = { nodes: [...input.nodes], variables: variablesIn(row), node_progress: false, ...announce };
      const { hint: _hint, async: _async, label: _label, ...started } = await start(params, call, facts);
      return { ...started, kept: kept.length };
    },
  };
}

/** Returns the completed nodes that neither run again nor depend on one that does. Nodes of a graph follow what they depend on. */
function keptNodes(spec: GraphSpec, rows: readonly NodeRow[], first: string | undefined): readonly NodeRow[] {
  const completed = new Map(rows.flatMap((row) => (row.state === 'completed' ? [[row.nodeId, row]] : [])));
  for (const { id, dependsOn } of spec.nodes) if (id === first || dependsOn.some((other) => !completed.has(other))) completed.delete(id);
  return [...completed.values()];
}

/** A kept node has its result and its taint; what it cost belongs to the first run. */
function toKept({ nodeId, output, partial, tainted, startedAtMs, endedAtMs }: NodeRow): NodeChange {
  return {
    nodeId,
    state: 'completed',
    attempt: 1,
    runId: null,
    stepsJson: '[]',
    output,
    error: null,
    cause: null,
    effectsRefused: 0,
    partial,
    tainted,
    tokens: 0,
    costNano: 0,
    unpriced: 0,
    startedAtMs,
    deadlineMs: null,
    endedAtMs,
  };
}
