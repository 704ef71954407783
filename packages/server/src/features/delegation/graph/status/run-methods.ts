import { type CallContext, isAdmin, ownerOf } from '../../../../kernel/call-context.ts';
import { headOf } from '../../../../kernel/cut-text.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import type { SubagentsApi } from '../../subagents/api.ts';
import type { GraphRunner } from '../run/runner.ts';
import type { StartDeps } from '../run/start/start.ts';
import { findVisible } from './found.ts';
import { wholeOutputs } from './outputs.ts';
import { notFound, reachOf } from './reach.ts';
import { listGraphRuns, recentGraphs } from './read-store.ts';
import { variablesIn } from '../rows.ts';
import { definitionView, graphView, type Reader, rowView, shownVariables, waiting } from './view.ts';

type RunMethods = HandlersOf<`graph.${'status' | 'outputs' | 'runs' | 'runDetail'}`>;

interface RunMethodsDeps extends Pick<StartDeps, 'db' | 'clock'> {
  readonly runner: GraphRunner;
  readonly subagents: Pick<SubagentsApi, 'counts' | 'said' | 'waitingOf'>;
}

const outputCharacters = 12_000;
const recentDefault = 60;

/** Returns the cause of a failure, for owners. */
const causeFor = (call: CallContext, cause: string | null): { readonly cause?: string } => (cause === null || !isAdmin(call) ? {} : { cause });

const readerOf = (call: CallContext): Reader => ({ isAdmin: isAdmin(call), ownerId: call.agentCaller === undefined ? ownerOf(call) : undefined });

/** Creates the methods that inspect runs of graphs. */
export function createRunMethods({ db, clock, runner, subagents }: RunMethodsDeps): RunMethods {
  return {
    'graph.status': async ({ graphId, recentMinutes = recentDefault }, call) => {
      if (graphId !== undefined) {
        const graph = await findVisible(db, graphId, call);
        const waiting = graph.row.endedAtMs === null ? await subagents.waitingOf(graph.row.id) : [];
        return graphView(graph, runner.liveOf(graph.row.id), waiting, readerOf(call));
      }
      const rows = await db.read(recentGraphs, { ...reachOf(call), sinceMs: clock.now() - recentMinutes * 60_000 });
      const { ownerId } = readerOf(call);
      const { active, max, queued } = subagents.counts();
      return {
        graphs: rows.map((row) => rowView(row, runner.liveOf(row.id), ownerId)),
        concurrency: { globalActiveSubAgents: active, maxGlobalSubAgents: max, queueDepth: queued },
      };
    },

    'graph.outputs': async ({ graphId }, call) => {
      const { row, nodes } = await findVisible(db, graphId, call);
      const inMemory = runner.outputsOf(row.id);
      const outputs = inMemory ?? Object.fromEntries(nodes.map(({ nodeId, output }) => [nodeId, output]));
      const cut = Object.entries(outputs).map(([nodeId, text]) => [nodeId, text === null ? null : headOf(text, outputCharacters)] as const);
      return { graphId: row.id, outputs: Object.fromEntries(cut), source: inMemory === undefined ? 'disk' : 'memory' };
    },

    'graph.runs': async ({ offset, limit }, call) => {
      const { rows, total } = await db.read(listGraphRuns, { ...reachOf(call), offset, limit });
      const { ownerId } = readerOf(call);
      const runs = rows.map(({ nodeCount, outputs, cause, result, ...row }) => ({
        graphId: row.id,
        name: row.label ?? row.id,
        status: row.state,
        ...waiting(runner.liveOf(row.id), row.principalId === ownerId),
        date: new Date(row.createdAtMs).toISOString(),
        agentId: row.agentId,
        ...(row.rootRunId !== null && { rootRunId: row.rootRunId }),
        ...shownVariables(row),
        ...(row.startedAtMs !== null && { startedAt: row.startedAtMs }),
        ...(row.endedAtMs !== null && { completedAt: row.endedAtMs }),
        tokens: row.tokens,
        cost: row.unpriced > 0 ? null : row.costNano / 1e9,
        ...(result !== null && { result }),
        nodeCount,
        fileCount: outputs,
        ...causeFor(call, cause),
      }));
      return { runs, total, offset, limit, hasMore: offset + rows.length < total };
    },

    'graph.runDetail': async ({ graphId }, call) => {
      const { row, nodes } = await findVisible(db, graphId, call);
      if (row.state === 'pending') throw notFound();
      const outputs = await wholeOutputs(row, nodes, subagents);
      return {
        graphId: row.id,
        name: row.label ?? row.id,
        status: row.state,
        date: new Date(row.createdAtMs).toISOString(),
        definition: definitionView(row.definitionJson),
        variables: variablesIn(row),
        nodes: nodes.map(({ nodeId, state, error, cause }) => {
          const whole = outputs.get(nodeId);
          const artifacts = whole === undefined ? [] : [{ filename: whole.filename, content: whole.text }];
          return { nodeId, status: state, output: whole?.text ?? null, ...(error !== null && { error }), ...causeFor(call, cause), artifacts };
        }),
      };
    },
  };
}
