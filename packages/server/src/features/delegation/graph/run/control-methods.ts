import { AppError } from '../../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../../kernel/audit.ts';
import { type CallContext, ownerOf } from '../../../../kernel/call-context.ts';
import { headOf } from '../../../../kernel/cut-text.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import type { WorkAuthority } from '../../../access/tokens/api.ts';
import { specOf } from '../rows.ts';
import { findVisible } from '../status/found.ts';
import { notFound } from '../status/reach.ts';
import { answerGate, cancelGraph, deleteGraphRun } from '../store.ts';
import { readApproval } from './gates/approval-terms.ts';
import type { GraphRunner } from './runner.ts';
import type { StartDeps } from './start/start.ts';

type ControlMethods = HandlersOf<`graph.${'cancel' | 'answer' | 'deleteRun'}`>;

interface ControlMethodsDeps extends Pick<StartDeps, 'db' | 'bus' | 'clock'> {
  readonly runner: GraphRunner;
  readonly authority: Pick<WorkAuthority, 'covers'>;
  /** Throws when the calling agent may not change graphs. */
  readonly admitChange: (call: CallContext) => void;
}

const answerCharacters = 500;

/** Creates the methods that cancel, answer and delete runs of graphs. */
export function createControlMethods({ db, bus, clock, runner, authority, admitChange }: ControlMethodsDeps): ControlMethods {
  return {
    'graph.cancel': async ({ graphId }, call) => {
      admitChange(call);
      const { row } = await findVisible(db, graphId, call);
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
      const { row, nodes } = await findVisible(db, graphId, call);
      if (row.principalId !== ownerOf(call)) throw new AppError('denied', 'Only the owner of the graph may answer');
      const isGate = specOf(row).nodes.some(({ id, work }) => id === nodeId && work?.type === 'approval-gate');
      const node = nodes.find((one) => one.nodeId === nodeId);
      if (!isGate || node === undefined) throw new AppError('not_found', `The graph has no approval gate "${nodeId}"`, { param: 'nodeId' });
      const approved = readApproval(answer);
      if (approved === undefined)
        throw new AppError('precondition_failed', 'The answer neither approves nor refuses; say for example "yes" or "no"', { param: 'answer' });
      const kind = approved ? 'approved' : 'denied';
      // A narrower token decides, but its text does not reach the agents, which act with the wider one.
      const text = authority.covers(row, call) ? headOf(answer, answerCharacters) : approved ? 'yes' : 'no';
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
      runner.answered(row.id, nodeId, kind, text);
      return { graphId: row.id, nodeId, approved };
    },

    'graph.deleteRun': async ({ graphId }, call) => {
      admitChange(call);
      const { row } = await findVisible(db, graphId, call);
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
