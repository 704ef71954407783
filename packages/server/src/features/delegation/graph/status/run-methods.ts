import { AppError } from '../../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../../kernel/audit.ts';
import { type CallContext, isAdmin, ownerOf } from '../../../../kernel/call-context.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import type { SubagentsApi } from '../../subagents/api.ts';
import { readApproval } from '../run/approval-terms.ts';
import { headOf } from '../../../../kernel/cut-text.ts';
import { wholeOutputs } from './outputs.ts';
import { notFound, reachOf } from './reach.ts';
import { findGraph, listGraphRuns, recentGraphs } from './read-store.ts';
import type { GraphRunner } from '../run/runner.ts';
import { specOf } from '../rows.ts';
import type { StartDeps } from '../run/start.ts';
import { answerGate, cancelGraph, deleteGraphRun, type FoundGraph } from '../store.ts';
import { graphView, rowView, waiting } from './view.ts';

export type RunMethods = HandlersOf<`graph.${'status' | 'outputs' | 'cancel' | 'answer' | 'runs' | 'runDetail' | 'deleteRun'}`>;

export interface RunMethodsDeps extends Pick<StartDeps, 'db' | 'bus' | 'clock'> {
  readonly runner: GraphRunner;
  readonly subagents: Pick<SubagentsApi, 'counts' | 'said' | 'waitingOf'>;
  /** Throws when the calling agent may not change graphs. */
  readonly admitChange: (call: CallContext) => void;
}

const outputCharacters = 12_000;
const recentDefault = 60;
const answerCharacters = 500;

/** Returns the cause of a failure, for owners. */
const causeFor = (call: CallContext, cause: string | null): { readonly cause?: string } => (cause === null || !isAdmin(call) ? {} : { cause });

/** Creates the methods that inspect, cancel, answer and delete runs of graphs. */
export function createRunMethods({ db, bus, clock, runner, subagents, admitChange }: RunMethodsDeps): RunMethods {
  async function found(named: string, call: CallContext): Promise<FoundGraph> {
    const graph = await db.read(findGraph, { ...reachOf(call), ownerId: ownerOf(call), named });
    if (graph === undefined) throw notFound();
    return graph;
  }

  return {
    'graph.status': async ({ graphId, recentMinutes = recentDefault }, call) => {
      if (graphId !== undefined) {
        const graph = await found(graphId, call);
        const waiting = graph.row.endedAtMs === null ? await subagents.waitingOf(graph.row.id) : [];
        return graphView(graph, runner.liveOf(graph.row.id), waiting, isAdmin(call));
      }
      const rows = await db.read(recentGraphs, { ...reachOf(call), sinceMs: clock.now() - recentMinutes * 60_000 });
      const { active, max, queued } = subagents.counts();
      return {
        graphs: rows.map((row) => rowView(row, runner.liveOf(row.id))),
        concurrency: { globalActiveSubAgents: active, maxGlobalSubAgents: max, queueDepth: queued },
      };
    },

    'graph.outputs': async ({ graphId }, call) => {
      const { row, nodes } = await found(graphId, call);
      const inMemory = runner.outputsOf(row.id);
      const outputs = inMemory ?? Object.fromEntries(nodes.map(({ nodeId, output }) => [nodeId, output]));
      const cut = Object.entries(outputs).map(([nodeId, text]) => [nodeId, text === null ? null : headOf(text, outputCharacters)] as const);
      return { graphId: row.id, outputs: Object.fromEntries(cut), source: inMemory === undefined ? 'disk' : 'memory' };
    },

    'graph.cancel': async ({ graphId }, call) => {
      admitChange(call);
      const { row } = await found(graphId, call);
      const audit = auditRow(call, clock.now(), { actionType: 'graph.cancel', classification: 'mutate', target: row.id });
      if (!(await db.write(cancelGraph, { id: row.id, reason: 'manual', audit })))
        throw new AppError(
          'precondition_failed',
          row.state === 'running' ? 'The graph is already being cancelled' : `The graph is not running: it is ${row.state}`,
        );
      announceAudit(bus, audit);
      runner.cancel(row.id, 'manual');
      return { cancelled: true, graphId: row.id };
    },

    'graph.answer': async ({ graphId, nodeId, answer }, call) => {
      // Agents never answer for a person, not even for their own principal.
      if (call.agentCaller !== undefined) throw new AppError('denied', 'Approval gates are answered by people, not by agents');
      const { row, nodes } = await found(graphId, call);
      if (row.principalId !== ownerOf(call)) throw new AppError('denied', 'Only the owner of the graph may answer');
      const isGate = specOf(row).nodes.some(({ id, work }) => id === nodeId && work?.type === 'approval-gate');
      const node = nodes.find((one) => one.nodeId === nodeId);
      if (!isGate || node === undefined) throw new AppError('not_found', `The graph has no approval gate "${nodeId}"`, { param: 'nodeId' });
      const approved = readApproval(answer);
      if (approved === undefined)
        throw new AppError('precondition_failed', 'The answer neither approves nor refuses; say for example "yes" or "no"', { param: 'answer' });
      const kind = approved ? 'approved' : 'denied';
      const text = headOf(answer, answerCharacters);
      const audit = auditRow(call, clock.now(), {
        actionType: 'graph.answer',
        classification: 'security',
        target: row.id,
        metadata: { nodeId, approved },
      });
      const held = await db.write(answerGate, { graphId: row.id, nodeId, answer: kind, text, atMs: clock.now(), audit });
      if (!held.isNew)
        throw new AppError(
          'precondition_failed',
          `The gate is not pending: ${held.answer ?? (node.state === 'running' ? 'it has expired' : `it is ${node.state}`)}`,
        );
      announceAudit(bus, audit);
      runner.liveOf(row.id)?.answered(nodeId, kind, text);
      return { graphId: row.id, nodeId, approved };
    },

    'graph.runs': async ({ offset, limit }, call) => {
      const { rows, total } = await db.read(listGraphRuns, { ...reachOf(call), offset, limit });
      const runs = rows.map(({ id, label, state, createdAtMs, nodeCount, outputs, cause }) => ({
        graphId: id,
        name: label ?? id,
        status: state,
        ...waiting(runner.liveOf(id)),
        date: new Date(createdAtMs).toISOString(),
        nodeCount,
        fileCount: outputs,
        ...causeFor(call, cause),
      }));
      return { runs, total, offset, limit, hasMore: offset + rows.length < total };
    },

    'graph.runDetail': async ({ graphId }, call) => {
      const { row, nodes } = await found(graphId, call);
      if (row.state === 'pending') throw notFound();
      const outputs = await wholeOutputs(row, nodes, subagents);
      return {
        graphId: row.id,
        name: row.label ?? row.id,
        status: row.state,
        date: new Date(row.createdAtMs).toISOString(),
        nodes: nodes.map(({ nodeId, state, error, cause }) => {
          const whole = outputs.get(nodeId);
          const artifacts = whole === undefined ? [] : [{ filename: whole.filename, content: whole.text }];
          return { nodeId, status: state, output: whole?.text ?? null, ...(error !== null && { error }), ...causeFor(call, cause), artifacts };
        }),
      };
    },

    'graph.deleteRun': async ({ graphId }, call) => {
      admitChange(call);
      const { row } = await found(graphId, call);
      if (row.state === 'pending') throw notFound();
      if (row.state === 'running') throw new AppError('precondition_failed', 'The graph is running; cancel it first');
      const audit = auditRow(call, clock.now(), { actionType: 'graph.deleteRun', classification: 'destructive', target: row.id });
      if (!(await db.write(deleteGraphRun, { id: row.id, audit }))) throw notFound();
      runner.forget(row.id);
      announceAudit(bus, audit);
      return { graphId: row.id, deleted: true };
    },
  };
}
