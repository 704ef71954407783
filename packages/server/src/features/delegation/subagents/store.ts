import type { SubAgentEndReason, SubAgentState } from '@gatehouse/contract';
import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import { type NewRunRow, type RunRow, runColumns, storedRun, type AnnounceTo } from './run/row.ts';

const insert = query<RunRow>(({ db, p }) =>
  db.insertInto('sub_agent_run').values({
    id: p('id'),
    root_run_id: p('rootRunId'),
    lease_id: p('leaseId'),
    parent_run_id: p('parentRunId'),
    depth: p('depth'),
    agent_id: p('agentId'),
    principal_id: p('principalId'),
    token_id: p('tokenId'),
    requester_key: p('requesterKey'),
    requester_ref: p('requesterRef'),
    requester_agent_id: p('requesterAgentId'),
    counted: p('counted'),
    conversation_ref: p('conversationRef'),
    session_key: p('sessionKey'),
    task: p('task'),
    options_json: p('optionsJson'),
    graph_id: p('graphId'),
    node_id: p('nodeId'),
    work_id: p('workId'),
    state: p('state'),
    queued_at_ms: p('queuedAtMs'),
    started_at_ms: p('startedAtMs'),
    active_at_ms: p('activeAtMs'),
    ended_at_ms: p('endedAtMs'),
    end_reason: p('endReason'),
    error_kind: p('errorKind'),
    cause: p('cause'),
    summary: p('summary'),
    result_text: p('resultText'),
    result_ref_json: p('resultRefJson'),
    telemetry_json: p('telemetryJson'),
    tainted: p('tainted'),
    announce_to: p('announceTo'),
    announce_ref: p('announceRef'),
    announce_target_json: p('announceTargetJson'),
    announce_run_id: p('announceRunId'),
    announce_work_id: p('announceWorkId'),
    announced: p('announced'),
    seen_turn_id: p('seenTurnId'),
    steered_at_ms: p('steeredAtMs'),
  }),
);

/** Part of `acceptRun`. */
export async function insertRun(tx: Tx, row: NewRunRow): Promise<void> {
  await tx.run(insert, storedRun(row));
}

const byId = query<{ id: string }, RunRow>(({ db, p }) => db.selectFrom('sub_agent_run').select(runColumns).where('id', '=', p('id')));

export function readRun(tx: Tx, id: string): Promise<RunRow | undefined> {
  return tx.get(byId, { id });
}

/** Finds the open runs of a graph, regardless of who may see them. */
const openOfGraph = query<{ graphId: string }, Pick<RunRow, 'id' | 'nodeId'>>(({ db, p }) =>
  db.selectFrom('sub_agent_run').select(['id', 'node_id as nodeId']).where('graph_id', '=', p('graphId')).where('ended_at_ms', 'is', null),
);

export async function openRunsOfGraph(tx: Tx, graphId: string): Promise<Pick<RunRow, 'id' | 'nodeId'>[]> {
  return tx.all(openOfGraph, { graphId });
}

export const findRun = operation('subagents.find', (tx, { id }: { readonly id: string }) => readRun(tx, id));

const openOf = query<{ requesterKey: string }, { count: number }>(({ db, sql, p }) =>
  db
    .selectFrom('sub_agent_run')
    .select(sql<number>`count(*)`.as('count'))
    .where('requester_key', '=', p('requesterKey'))
    .where('ended_at_ms', 'is', null)
    .where(sql<boolean>`counted = 1`),
);

/** Counts the open runs of one requester to which its limits apply. */
export async function countOpen(tx: Tx, requesterKey: string): Promise<number> {
  return (await tx.get(openOf, { requesterKey }))?.count ?? 0;
}

const begin = query<{ id: string; atMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('sub_agent_run')
    .set({ state: 'running', started_at_ms: sql`coalesce(started_at_ms, ${p('atMs')})`, active_at_ms: p('atMs') })
    .where('id', '=', p('id'))
    .where('ended_at_ms', 'is', null),
);

/** Part of `beginRun`; false when the run has ended. */
export async function markRunning(tx: Tx, input: { readonly id: string; readonly atMs: number }): Promise<boolean> {
  return (await tx.run(begin, input)).changes > 0;
}

export interface RunClosing {
  readonly id: string;
  readonly state: Extract<SubAgentState, 'completed' | 'failed'>;
  readonly endReason: SubAgentEndReason;
  readonly errorKind: string | null;
  readonly cause: string | null;
  readonly summary: string | null;
  readonly resultText: string | null;
  readonly resultRefJson: string | null;
  readonly telemetryJson: string | null;
  readonly tainted: number;
  readonly atMs: number;
}

const close = query<RunClosing, RunRow>(({ db, sql, p }) =>
  db
    .updateTable('sub_agent_run')
    .set({
      state: p('state'),
      end_reason: p('endReason'),
      error_kind: p('errorKind'),
      cause: p('cause'),
      summary: p('summary'),
      result_text: p('resultText'),
      result_ref_json: p('resultRefJson'),
      telemetry_json: p('telemetryJson'),
      tainted: p('tainted'),
      ended_at_ms: p('atMs'),
      announced: sql`case when announce_to = 'none' then 'none' else announced end`,
    })
    .where('id', '=', p('id'))
    .where('ended_at_ms', 'is', null)
    .returning(runColumns),
);

/** Ends a run with a single write; returns its row, or undefined when it had already ended. Part of `endRun`. */
export async function closeRun(tx: Tx, closing: RunClosing): Promise<RunRow | undefined> {
  const { id, state, endReason, errorKind, cause, summary, resultText, resultRefJson, telemetryJson, tainted, atMs } = closing;
  return (await tx.all(close, { id, state, endReason, errorKind, cause, summary, resultText, resultRefJson, telemetryJson, tainted, atMs }))[0];
}

const childrenOf = query<{ id: string }, { id: string }>(({ db, p }) =>
  db.selectFrom('sub_agent_run').select('id').where('parent_run_id', '=', p('id')),
);

/** Returns a run and everything that it delegated, the run first. */
export async function subtreeOf(tx: Tx, id: string): Promise<string[]> {
  const found = [id];
  // The list grows during the iteration.
  for (const each of found) for (const child of await tx.all(childrenOf, { id: each })) found.push(child.id);
  return found;
}

const openOfRoot = query<{ rootRunId: string }, { id: string; state: SubAgentState; parentRunId: string | null }>(({ db, p }) =>
  db
    .selectFrom('sub_agent_run')
    .select(['id', 'state', 'parent_run_id as parentRunId'])
    .where('root_run_id', '=', p('rootRunId'))
    .where('ended_at_ms', 'is', null)
    .orderBy('id'),
);

export function openRunsOfRoot(tx: Tx, rootRunId: string) {
  return tx.all(openOfRoot, { rootRunId });
}

const redirect = query<{ id: string; announceTo: AnnounceTo }>(({ db, p }) =>
  db
    .updateTable('sub_agent_run')
    .set({ announce_to: p('announceTo'), announce_run_id: null })
    .where('id', '=', p('id')),
);

/** Suppresses the announcement of the run. */
export async function suppressAnnouncement(tx: Tx, id: string): Promise<void> {
  await tx.run(redirect, { id, announceTo: 'none' });
}

/** The run that a key identifies; it outlives the row of the run. */
export interface KeyRow {
  readonly key: string;
  readonly digest: string;
  readonly runId: string;
  readonly rootRunId: string;
  readonly conversationRef: string;
  readonly atMs: number;
}

const keyOf = query<{ key: string }, KeyRow>(({ db, p }) =>
  db
    .selectFrom('sub_agent_key')
    .select(['run_key as key', 'digest', 'run_id as runId', 'root_run_id as rootRunId', 'conversation_ref as conversationRef', 'at_ms as atMs'])
    .where('run_key', '=', p('key')),
);

export function findKey(tx: Tx, key: string): Promise<KeyRow | undefined> {
  return tx.get(keyOf, { key });
}

const setKey = query<KeyRow>(({ db, sql, p }) =>
  db
    .insertInto('sub_agent_key')
    .values({
      run_key: p('key'),
      digest: p('digest'),
      run_id: p('runId'),
      root_run_id: p('rootRunId'),
      conversation_ref: p('conversationRef'),
      at_ms: p('atMs'),
    })
    .onConflict((conflict) =>
      conflict.column('run_key').doUpdateSet({
        digest: sql`excluded.digest`,
        run_id: sql`excluded.run_id`,
        root_run_id: sql`excluded.root_run_id`,
        conversation_ref: sql`excluded.conversation_ref`,
        at_ms: sql`excluded.at_ms`,
      }),
    ),
);

/** Makes the key identify the run from now on. Part of `acceptRun`. */
export async function keepKey(tx: Tx, { key, digest, runId, rootRunId, conversationRef, atMs }: KeyRow): Promise<void> {
  await tx.run(setKey, { key, digest, runId, rootRunId, conversationRef, atMs });
}

const childRows = query<{ id: string }, RunRow>(({ db, sql, p }) =>
  db
    .selectFrom('sub_agent_run')
    .select(runColumns)
    .where('parent_run_id', '=', p('id'))
    .where(sql<boolean>`announced = 'seen'`),
);

/** Reads the child runs whose completion this run was shown. */
export function readSeen(tx: Tx, id: string): Promise<RunRow[]> {
  return tx.all(childRows, { id });
}

export const subagentRunOperations = [findRun];
