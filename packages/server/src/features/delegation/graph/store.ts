import type { GraphNodeState, GraphState } from '@gatehouse/contract';
import { appendAudit, type AuditRow } from '../../../kernel/db/audit.ts';
import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import type { CancelReason, GraphRow, NodeRow, StopReason } from './rows.ts';

export const graphColumns = [
  'id',
  'principalId',
  'tokenId',
  'agentId',
  'label',
  'definitionJson',
  'variablesJson',
  'nodeCount',
  'rootRunId',
  'requesterJson',
  'byAgent',
  'announceJson',
  'nodeProgress',
  'workId',
  'state',
  'cancelReason',
  'createdAtMs',
  'startedAtMs',
  'endedAtMs',
  'waitedMs',
] as const;

const nodeColumns = [
  'graphId',
  'nodeId',
  'place',
  'state',
  'attempt',
  'runId',
  'stepsJson',
  'output',
  'summary',
  'error',
  'cause',
  'partial',
  'tainted',
  'effectsRefused',
  'answer',
  'answerText',
  'tokens',
  'costNano',
  'unpriced',
  'startedAtMs',
  'deadlineMs',
  'endedAtMs',
] as const;

const insertGraph = query<GraphRow>(({ db, each }) => db.insertInto('graphRun').values(each(graphColumns)));

const insertNode = query<{ graphId: string; nodeId: string; place: number }>(({ db, p }) =>
  db.insertInto('graphNode').values({
    graphId: p('graphId'),
    nodeId: p('nodeId'),
    place: p('place'),
    state: 'pending',
    attempt: 1,
    runId: null,
    stepsJson: '[]',
    output: null,
    summary: null,
    error: null,
    partial: 0,
    tainted: 0,
    effectsRefused: 0,
    answer: null,
    answerText: null,
    tokens: 0,
    costNano: 0,
    unpriced: 0,
    startedAtMs: null,
    deadlineMs: null,
    endedAtMs: null,
  }),
);

const graphById = query<{ id: string }, GraphRow>(({ db, p }) => db.selectFrom('graphRun').select(graphColumns).where('id', '=', p('id')));
const graphForUpdate = query<{ id: string }, Pick<GraphRow, 'state' | 'cancelReason'>>(({ db, p }) =>
  db.selectFrom('graphRun').select(['state', 'cancelReason']).where('id', '=', p('id')).forUpdate(),
);
const nodesOf = query<{ graphId: string }, NodeRow>(({ db, p }) =>
  db.selectFrom('graphNode').select(nodeColumns).where('graphId', '=', p('graphId')).orderBy('place'),
);
const dropGraph = query<{ id: string }>(({ db, p }) => db.deleteFrom('graphRun').where('id', '=', p('id')));
const dropNodes = query<{ id: string }>(({ db, p }) => db.deleteFrom('graphNode').where('graphId', '=', p('id')));

// A state bound as a parameter would not use the partial index of that state.
const countOpen = query<{ principalId: string }, { all: number; own: number }>(({ db, sql, p }) =>
  db
    .selectFrom('graphRun')
    .select([sql<number>`count(*)`.as('all'), sql<number>`count(case when principal_id = ${p('principalId')} then 1 end)`.as('own')])
    .where(sql<boolean>`state = 'running'`),
);

/** Counts the running graphs, and those of one principal. */
export async function openGraphs(tx: Tx, principalId: string): Promise<{ readonly all: number; readonly own: number }> {
  return (await tx.get(countOpen, { principalId })) ?? { all: 0, own: 0 };
}

/** Adds a running graph, replacing the loaded one with the same id. False when that one was already started, or is gone. */
export async function addGraph(tx: Tx, row: GraphRow, nodeIds: readonly string[], wasLoaded: boolean): Promise<boolean> {
  if (wasLoaded) {
    if ((await tx.get(graphForUpdate, { id: row.id }))?.state !== 'pending') return false;
    await tx.run(dropGraph, { id: row.id });
  }
  await tx.run(insertGraph, row);
  for (const [place, nodeId] of nodeIds.entries()) await tx.run(insertNode, { graphId: row.id, nodeId, place });
  return true;
}

const beyondLoaded = query<{ principalId: string; kept: number }>(({ db, sql, p }) =>
  db
    .deleteFrom('graphRun')
    .where(
      sql<boolean>`id in (select id from graph_run where state = 'pending' and principal_id = ${p('principalId')} order by created_at_ms desc, id desc limit 100 offset ${p('kept')})`,
    ),
);

/** Maximum of loaded graphs per owner that are not started; the oldest are dropped. */
const maxLoaded = 100;

export const keepLoaded = operation('graph.keepLoaded', async (tx, row: GraphRow): Promise<void> => {
  await tx.run(insertGraph, row);
  await tx.run(beyondLoaded, { principalId: row.principalId, kept: maxLoaded });
});

export interface FoundGraph {
  readonly row: GraphRow;
  readonly nodes: readonly NodeRow[];
}

export async function readGraph(tx: Tx, id: string): Promise<FoundGraph | undefined> {
  const row = await tx.get(graphById, { id });
  return row && { row, nodes: await tx.all(nodesOf, { graphId: id }) };
}

/** The fields of a node that change. */
export interface NodeChange extends Pick<
  NodeRow,
  | 'nodeId'
  | 'state'
  | 'attempt'
  | 'runId'
  | 'stepsJson'
  | 'output'
  | 'error'
  | 'cause'
  | 'effectsRefused'
  | 'partial'
  | 'tainted'
  | 'tokens'
  | 'costNano'
  | 'unpriced'
  | 'startedAtMs'
  | 'deadlineMs'
  | 'endedAtMs'
> {}

const changeNode = query<NodeChange & { graphId: string }>(({ db, sql, p }) =>
  db
    .updateTable('graphNode')
    .set({
      state: p('state'),
      attempt: p('attempt'),
      runId: p('runId'),
      stepsJson: p('stepsJson'),
      output: p('output'),
      error: p('error'),
      cause: p('cause'),
      effectsRefused: p('effectsRefused'),
      partial: p('partial'),
      tainted: p('tainted'),
      tokens: p('tokens'),
      costNano: p('costNano'),
      unpriced: p('unpriced'),
      startedAtMs: p('startedAtMs'),
      deadlineMs: p('deadlineMs'),
      endedAtMs: p('endedAtMs'),
    })
    .where('graphId', '=', p('graphId'))
    .where('nodeId', '=', p('nodeId'))
    .where(sql<boolean>`state in ('pending', 'running')`),
);

const ifRunning = query<{ id: string }, { id: string }>(({ db, sql, p }) =>
  db
    .selectFrom('graphRun')
    .select('id')
    .where('id', '=', p('id'))
    .where(sql<boolean>`state = 'running'`)
    .forUpdate(),
);

const keepWaited = query<{ id: string; waitedMs: number }>(({ db, p }) =>
  db
    .updateTable('graphRun')
    .set({ waitedMs: p('waitedMs') })
    .where('id', '=', p('id')),
);

/** Updates nodes of a running graph; false when it does not run any more, and nothing was written. */
export async function changeNodes(tx: Tx, graphId: string, changes: readonly NodeChange[], waitedMs?: number): Promise<boolean> {
  if ((await tx.get(ifRunning, { id: graphId })) === undefined) return false;
  if (waitedMs !== undefined) await tx.run(keepWaited, { id: graphId, waitedMs });
  for (const change of changes) {
    const {
      nodeId,
      state,
      attempt,
      runId,
      stepsJson,
      output,
      error,
      cause,
      effectsRefused,
      partial,
      tainted,
      tokens,
      costNano,
      unpriced,
      startedAtMs,
      deadlineMs,
      endedAtMs,
    } = change;
    const numbers = { attempt, effectsRefused, partial, tainted, tokens, costNano, unpriced, startedAtMs, deadlineMs, endedAtMs };
    await tx.run(changeNode, { graphId, nodeId, state, runId, stepsJson, output, error, cause, ...numbers });
  }
  return true;
}

const endOne = query<{ id: string; state: GraphState; reason: CancelReason | null; atMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('graphRun')
    .set({
      state: p('state'),
      cancelReason: sql<CancelReason | null>`coalesce(${p('reason')}, cancel_reason)`,
      endedAtMs: p('atMs'),
    })
    .where('id', '=', p('id'))
    .where(sql<boolean>`state = 'running'`),
);
const endNodes = query<{ id: string; from: GraphNodeState; to: GraphNodeState; error: string; atMs: number }>(({ db, p }) =>
  db
    .updateTable('graphNode')
    .set({ state: p('to'), error: p('error'), endedAtMs: p('atMs') })
    .where('graphId', '=', p('id'))
    .where('state', '=', p('from')),
);

/** Returns the reason of a confirmed stop of a running graph, which then must be the reason of its end. */
export async function stoppedGraph(tx: Tx, id: string): Promise<StopReason | undefined> {
  const row = await tx.get(graphForUpdate, { id });
  if (row?.state !== 'running') return undefined;
  return row.cancelReason === 'manual' || row.cancelReason === 'killed' ? row.cancelReason : undefined;
}

export interface GraphEnd {
  readonly id: string;
  readonly state: Extract<GraphState, 'completed' | 'failed' | 'cancelled'>;
  readonly reason: CancelReason | null;
  /** Error of nodes that have not ended. */
  readonly error: string;
  readonly atMs: number;
}

/** Ends a running graph with all of its unfinished nodes. False when it had already ended. */
export async function endGraphRow(tx: Tx, { id, state, reason, error, atMs }: GraphEnd): Promise<boolean> {
  if ((await tx.run(endOne, { id, state, reason, atMs })).changes === 0) return false;
  await tx.run(endNodes, { id, from: 'running', to: 'failed', error, atMs });
  await tx.run(endNodes, { id, from: 'pending', to: 'skipped', error, atMs });
  return true;
}

const openOfRoot = query<{ rootRunId: string }, { id: string }>(({ db, sql, p }) =>
  db
    .selectFrom('graphRun')
    .select('id')
    .where('rootRunId', '=', p('rootRunId'))
    .where(sql<boolean>`state = 'running'`),
);

export function openGraphsOf(tx: Tx, rootRunId: string): Promise<{ readonly id: string }[]> {
  return tx.all(openOfRoot, { rootRunId });
}

const cancelOne = query<{ id: string; reason: CancelReason }>(({ db, sql, p }) =>
  db
    .updateTable('graphRun')
    .set({ cancelReason: p('reason') })
    .where('id', '=', p('id'))
    .where('cancelReason', 'is', null)
    .where(sql<boolean>`state = 'running'`),
);

/** Prevents new work of a graph. False when it has ended, or was already cancelled. */
export const cancelGraph = operation(
  'graph.cancel',
  async (tx, { id, reason, audit }: { readonly id: string; readonly reason: CancelReason; readonly audit?: AuditRow }): Promise<boolean> => {
    if ((await tx.run(cancelOne, { id, reason })).changes === 0) return false;
    if (audit !== undefined) await appendAudit(tx, audit);
    return true;
  },
);

const answerOne = query<{ graphId: string; nodeId: string; answer: NonNullable<NodeRow['answer']>; text: string | null; atMs: number | null }>(
  ({ db, sql, p }) =>
    db
      .updateTable('graphNode')
      .set({ answer: p('answer'), answerText: p('text') })
      .where('graphId', '=', p('graphId'))
      .where('nodeId', '=', p('nodeId'))
      .where('answer', 'is', null)
      // The deadline also applies while no process runs the graph.
      .where(sql<boolean>`state = 'running' and (${p('atMs', 'integer')} is null or deadline_ms > ${p('atMs')})`),
);
const answerOf = query<{ graphId: string; nodeId: string }, Pick<NodeRow, 'answer' | 'answerText'>>(({ db, p }) =>
  db.selectFrom('graphNode').select(['answer', 'answerText']).where('graphId', '=', p('graphId')).where('nodeId', '=', p('nodeId')),
);

/** Answers a pending gate, or expires it: the first write wins. Returns the valid answer, and whether this call wrote it. */
export const answerGate = operation(
  'graph.answer',
  async (
    tx,
    input: {
      readonly graphId: string;
      readonly nodeId: string;
      readonly answer: NonNullable<NodeRow['answer']>;
      readonly text: string | null;
      /** When it was given; null for an expiry. */
      readonly atMs: number | null;
      readonly audit?: AuditRow;
    },
  ): Promise<Pick<NodeRow, 'answer' | 'answerText'> & { readonly isNew: boolean }> => {
    const { graphId, nodeId, answer, text, atMs, audit } = input;
    const isNew = (await tx.run(answerOne, { graphId, nodeId, answer, text, atMs })).changes > 0;
    if (isNew && audit !== undefined) await appendAudit(tx, audit);
    const held = await tx.get(answerOf, { graphId, nodeId });
    return { answer: held?.answer ?? null, answerText: held?.answerText ?? null, isNew };
  },
);

/** Deletes a run with its outputs; the caller has checked that it has ended. */
export const deleteGraphRun = operation(
  'graph.deleteRun',
  async (tx, { id, audit }: { readonly id: string; readonly audit: AuditRow }): Promise<boolean> => {
    const row = await tx.get(graphForUpdate, { id });
    if (row === undefined || row.state === 'running') return false;
    await tx.run(dropNodes, { id });
    await tx.run(dropGraph, { id });
    await appendAudit(tx, audit);
    return true;
  },
);

const overdue = query<{ beforeMs: number; loadedBeforeMs: number; kept: number }, { id: string }>(({ db, sql, p }) =>
  db
    .selectFrom('graphRun')
    .select('id')
    .where(
      sql<boolean>`(state = 'pending' and created_at_ms < ${p('loadedBeforeMs')}) or ended_at_ms < ${p('beforeMs')} or id in (
        select id from (select id, row_number() over (partition by principal_id order by ended_at_ms desc, id desc) as place
          from graph_run where ended_at_ms is not null) as ranked where place > ${p('kept')} limit 500)`,
    )
    .limit(500)
    .forUpdate()
    .skipLocked(),
);

/** Deletes old ended and loaded graphs, and those beyond the number that is kept of each owner; returns how many. */
export const pruneGraphs = operation(
  'graph.prune',
  async (tx, input: { readonly beforeMs: number; readonly loadedBeforeMs: number; readonly kept: number }): Promise<number> => {
    const found = await tx.all(overdue, input);
    for (const { id } of found) {
      await tx.run(dropNodes, { id });
      await tx.run(dropGraph, { id });
    }
    return found.length;
  },
);

export const graphOperations = [keepLoaded, cancelGraph, answerGate, deleteGraphRun, pruneGraphs];

const growNodeBy = query<{ graphId: string; nodeId: string; tokens: number; nano: number; unpriced: number }>(({ db, sql, p }) =>
  db
    .updateTable('graphNode')
    .set({
      tokens: sql<number>`tokens + ${p('tokens')}`,
      costNano: sql<number>`cost_nano + ${p('nano')}`,
      unpriced: sql<number>`case when ${p('unpriced')} > 0 then 1 else unpriced end`,
    })
    .where('graphId', '=', p('graphId'))
    .where('nodeId', '=', p('nodeId')),
);

/** Adds calls that were made for a node outside of its runs. Part of `bookCalls`. */
export async function growNode(
  tx: Tx,
  input: { readonly graphId: string; readonly nodeId: string; readonly tokens: number; readonly nano: number; readonly unpriced: number },
): Promise<void> {
  await tx.run(growNodeBy, input);
}

const setSummary = query<{ graphId: string; nodeId: string; text: string }>(({ db, p }) =>
  db
    .updateTable('graphNode')
    .set({ summary: p('text') })
    .where('graphId', '=', p('graphId'))
    .where('nodeId', '=', p('nodeId')),
);

/** Stores the summary of a node's output. Part of `bookWork` and `abortOpenTurns`. */
export async function keepNodeSummary(tx: Tx, input: { readonly graphId: string; readonly nodeId: string; readonly text: string }): Promise<void> {
  await tx.run(setSummary, input);
}
