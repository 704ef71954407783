import type { SubAgentEndReason, SubAgentState, SubAgentTelemetry } from '@gatehouse/contract';
import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import { parseJson } from '../../../kernel/json.ts';
import { type NewRunRow, type RunRow, runColumns, storedRun, type AnnounceTo } from './run/row.ts';

const insert = query<RunRow>(({ db, each }) => db.insertInto('subAgentRun').values(each(runColumns)));

/** Part of `acceptRun`. */
export async function insertRun(tx: Tx, row: NewRunRow): Promise<void> {
  await tx.run(insert, storedRun(row));
}

const byId = query<{ id: string }, RunRow>(({ db, p }) => db.selectFrom('subAgentRun').select(runColumns).where('id', '=', p('id')));

export function readRun(tx: Tx, id: string): Promise<RunRow | undefined> {
  return tx.get(byId, { id });
}

const byIdForUpdate = query<{ id: string }, RunRow>(({ db, p }) =>
  db.selectFrom('subAgentRun').select(runColumns).where('id', '=', p('id')).forUpdate(),
);

/** `readRun` for operations that change the run, or add to it what its end must see. */
export function lockRun(tx: Tx, id: string): Promise<RunRow | undefined> {
  return tx.get(byIdForUpdate, { id });
}

/** Finds the open runs of a graph, regardless of who may see them. */
const openOfGraph = query<{ graphId: string }, Pick<RunRow, 'id' | 'nodeId'>>(({ db, p }) =>
  db.selectFrom('subAgentRun').select(['id', 'nodeId']).where('graphId', '=', p('graphId')).where('endedAtMs', 'is', null),
);

export async function openRunsOfGraph(tx: Tx, graphId: string): Promise<Pick<RunRow, 'id' | 'nodeId'>[]> {
  return tx.all(openOfGraph, { graphId });
}

export const findRun = operation('subagents.find', (tx, { id }: { readonly id: string }) => readRun(tx, id));

const openOf = query<{ requesterKey: string }, { count: number }>(({ db, sql, p }) =>
  db
    .selectFrom('subAgentRun')
    .select(sql<number>`count(*)`.as('count'))
    .where('requesterKey', '=', p('requesterKey'))
    .where('endedAtMs', 'is', null)
    .where(sql<boolean>`counted = 1`),
);

/** Counts the open runs of one requester to which its limits apply. */
export async function countOpen(tx: Tx, requesterKey: string): Promise<number> {
  return (await tx.get(openOf, { requesterKey }))?.count ?? 0;
}

const begin = query<{ id: string; atMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('subAgentRun')
    .set({ state: 'running', startedAtMs: sql<number>`coalesce(started_at_ms, ${p('atMs')})`, activeAtMs: p('atMs') })
    .where('id', '=', p('id'))
    .where('endedAtMs', 'is', null),
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
    .updateTable('subAgentRun')
    .set({
      state: p('state'),
      endReason: p('endReason'),
      errorKind: p('errorKind'),
      cause: p('cause'),
      summary: p('summary'),
      resultText: p('resultText'),
      resultRefJson: p('resultRefJson'),
      telemetryJson: p('telemetryJson'),
      tainted: p('tainted'),
      endedAtMs: p('atMs'),
      announced: sql`case when announce_to = 'none' then 'none' else announced end`,
    })
    .where('id', '=', p('id'))
    .where('endedAtMs', 'is', null)
    .returning(runColumns),
);

/** Ends a run with a single write; returns its row, or undefined when it had already ended. Part of `endRun`. */
export async function closeRun(tx: Tx, closing: RunClosing): Promise<RunRow | undefined> {
  const { id, state, endReason, errorKind, cause, summary, resultText, resultRefJson, telemetryJson, tainted, atMs } = closing;
  return (await tx.all(close, { id, state, endReason, errorKind, cause, summary, resultText, resultRefJson, telemetryJson, tainted, atMs }))[0];
}

/** What the model calls for a run outside of its turn cost, such as those of its tools. */
export interface RunParts {
  readonly tokens: number;
  readonly nano: number;
  /** Calls without a known price. */
  readonly unpriced: number;
}

const partsOf = query<{ id: string }, RunParts & { telemetryJson: string | null; isEnded: number }>(({ db, sql, p }) =>
  db
    .selectFrom('subAgentRun')
    .select(['partTokens as tokens', 'partNano as nano', 'partUnpriced as unpriced', 'telemetryJson'])
    .select(sql<number>`case when ended_at_ms is null then 0 else 1 end`.as('isEnded'))
    .where('id', '=', p('id'))
    .forUpdate(),
);

const growParts = query<RunParts & { id: string; telemetryJson: string | null }>(({ db, sql, p }) =>
  db
    .updateTable('subAgentRun')
    .set({
      partTokens: sql<number>`part_tokens + ${p('tokens')}`,
      partNano: sql<number>`part_nano + ${p('nano')}`,
      partUnpriced: sql<number>`part_unpriced + ${p('unpriced')}`,
      telemetryJson: p('telemetryJson'),
    })
    .where('id', '=', p('id')),
);

/** Returns what was called for a run outside of its turn. Part of `endRun`. */
export async function readRunParts(tx: Tx, id: string): Promise<RunParts> {
  const { tokens, nano, unpriced } = (await tx.get(partsOf, { id })) ?? { tokens: 0, nano: 0, unpriced: 0 };
  return { tokens, nano, unpriced };
}

/** Adds calls to the cost of a run, also when they end after it. Part of `bookCalls`. */
export async function growRun(tx: Tx, { id, ...parts }: RunParts & { readonly id: string }): Promise<void> {
  const found = await tx.get(partsOf, { id });
  if (found === undefined) return;
  await tx.run(growParts, { id, ...parts, telemetryJson: found.isEnded === 1 ? withParts(found.telemetryJson, parts) : null });
}

const unbegunTelemetry: SubAgentTelemetry = {
  tokensUsedTotal: 0,
  costTotal: 0,
  finishReason: 'aborted',
  stepsExecuted: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
};

/** Adds what was called for a run to the telemetry of its turn. */
export function withParts(json: string | null, { tokens, nano, unpriced }: RunParts): string | null {
  if (tokens === 0 && nano === 0 && unpriced === 0) return json;
  // Written only by this feature; the storage threads know no schemas.
  const own = json === null ? unbegunTelemetry : (parseJson(json) as SubAgentTelemetry);
  const costTotal = own.costTotal === null || unpriced > 0 ? null : (Math.round(own.costTotal * 1e9) + nano) / 1e9;
  return JSON.stringify({ ...own, tokensUsedTotal: own.tokensUsedTotal + tokens, costTotal });
}

const childrenOf = query<{ id: string }, { id: string }>(({ db, p }) => db.selectFrom('subAgentRun').select('id').where('parentRunId', '=', p('id')));

/** Returns a run and everything that it delegated, the run first. */
export async function subtreeOf(tx: Tx, id: string): Promise<string[]> {
  const found = [id];
  // The list grows during the iteration.
  for (const each of found) for (const child of await tx.all(childrenOf, { id: each })) found.push(child.id);
  return found;
}

const openOfRoot = query<{ rootRunId: string }, { id: string; state: SubAgentState; parentRunId: string | null }>(({ db, p }) =>
  db
    .selectFrom('subAgentRun')
    .select(['id', 'state', 'parentRunId'])
    .where('rootRunId', '=', p('rootRunId'))
    .where('endedAtMs', 'is', null)
    .orderBy('id'),
);

export function openRunsOfRoot(tx: Tx, rootRunId: string) {
  return tx.all(openOfRoot, { rootRunId });
}

const redirect = query<{ id: string; announceTo: AnnounceTo }>(({ db, p }) =>
  db
    .updateTable('subAgentRun')
    .set({ announceTo: p('announceTo'), announceRunId: null })
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
  db.selectFrom('subAgentKey').select(['runKey as key', 'digest', 'runId', 'rootRunId', 'conversationRef', 'atMs']).where('runKey', '=', p('key')),
);

export function findKey(tx: Tx, key: string): Promise<KeyRow | undefined> {
  return tx.get(keyOf, { key });
}

const setKey = query<KeyRow>(({ db, sql, each, p }) =>
  db
    .insertInto('subAgentKey')
    .values({ ...each(['digest', 'runId', 'rootRunId', 'conversationRef', 'atMs']), runKey: p('key') })
    .onConflict((conflict) =>
      conflict.column('runKey').doUpdateSet({
        digest: sql<string>`excluded.digest`,
        runId: sql<string>`excluded.run_id`,
        rootRunId: sql<string>`excluded.root_run_id`,
        conversationRef: sql<string>`excluded.conversation_ref`,
        atMs: sql<number>`excluded.at_ms`,
      }),
    ),
);

/** Makes the key identify the run from now on. Part of `acceptRun`. */
export async function keepKey(tx: Tx, { key, digest, runId, rootRunId, conversationRef, atMs }: KeyRow): Promise<void> {
  await tx.run(setKey, { key, digest, runId, rootRunId, conversationRef, atMs });
}

const childRows = query<{ id: string }, RunRow>(({ db, sql, p }) =>
  db
    .selectFrom('subAgentRun')
    .select(runColumns)
    .where('parentRunId', '=', p('id'))
    .where(sql<boolean>`announced = 'seen'`),
);

/** Reads the child runs whose completion this run was shown. */
export function readSeen(tx: Tx, id: string): Promise<RunRow[]> {
  return tx.all(childRows, { id });
}

export const subagentRunOperations = [findRun];

const rootByWork = query<{ workId: string }, { rootRunId: string }>(({ db, p }) =>
  db.selectFrom('subAgentRun').select('rootRunId').where('workId', '=', p('workId')),
);

/** Returns the root run of a run by its work item. Part of `abortOpenTurns`. */
export async function rootOfWork(tx: Tx, workId: string): Promise<string | undefined> {
  return (await tx.get(rootByWork, { workId }))?.rootRunId;
}
