import { AppError } from '../../../kernel/app-error.ts';
import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import type { NewLease, RootEntry, RootLeave, RootSums, RootWorkKind } from './api.ts';

interface WorkCounts {
  readonly runs: number;
  readonly graphs: number;
  readonly scripts: number;
}

const countOf = (kind: RootWorkKind): WorkCounts => ({
  runs: Number(kind === 'run'),
  graphs: Number(kind === 'graph'),
  scripts: Number(kind === 'script'),
});

export const rootState = query<{ id: string }, { state: string; open: number; agentId: string; principalId: string }>(({ db, sql, p }) =>
  db
    .selectFrom('rootRun')
    .select(['state', 'agentId', 'principalId', sql<number>`open_runs + open_graphs + open_scripts`.as('open')])
    .where('id', '=', p('id'))
    .forUpdate(),
);

type Opening = WorkCounts &
  Omit<RootEntry, 'rootRunId' | 'kind'> & { readonly id: string; readonly state: string; readonly endedAtMs: number | null };

const open = query<Opening>(({ db, each, p }) =>
  db.insertInto('rootRun').values({
    ...each(['id', 'agentId', 'principalId', 'conversationRef', 'origin', 'profile', 'state', 'graphs', 'endedAtMs']),
    evicted: 0,
    openRuns: p('runs'),
    openGraphs: p('graphs'),
    openScripts: p('scripts'),
    completedRuns: 0,
    failedRuns: 0,
    completions: 0,
    endedTokens: 0,
    endedNano: 0,
    spentTokens: 0,
    spentNano: 0,
    unpriced: 0,
    startedAtMs: p('atMs'),
    heartbeatAtMs: p('atMs'),
  }),
);

const enter = query<WorkCounts & { id: string; atMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('rootRun')
    .set({
      state: 'active',
      openRuns: sql<number>`open_runs + ${p('runs')}`,
      openGraphs: sql<number>`open_graphs + ${p('graphs')}`,
      openScripts: sql<number>`open_scripts + ${p('scripts')}`,
      graphs: sql<number>`graphs + ${p('graphs')}`,
      heartbeatAtMs: p('atMs'),
      endedAtMs: null,
    })
    .where('id', '=', p('id')),
);

/**
 * Adds work to a root run, in the transaction that accepts it; the first one writes the root. Throws `denied` for a revoked root,
 * so that nothing new begins after a kill is committed.
 */
export async function enterRoot(tx: Tx, { rootRunId: id, kind, ...about }: RootEntry): Promise<void> {
  const found = await tx.get(rootState, { id });
  if (found === undefined) return openRoot(tx, { id, ...about, ...countOf(kind), state: 'active', endedAtMs: null });
  if (found.state === 'revoked') throw new AppError('denied', 'The run that this belongs to was stopped');
  await tx.run(enter, { id, atMs: about.atMs, ...countOf(kind) });
}

/** Writes a root before any of its work exists. */
export async function openRoot(tx: Tx, opening: Opening): Promise<void> {
  const { id, agentId, principalId, conversationRef, origin, profile, atMs, runs, graphs, scripts, state, endedAtMs } = opening;
  await tx.run(open, { id, agentId, principalId, conversationRef, origin, profile, atMs, runs, graphs, scripts, state, endedAtMs });
}

interface Leaving extends WorkCounts {
  readonly id: string;
  readonly completedRuns: number;
  readonly failedRuns: number;
  readonly completions: number;
  readonly tokens: number;
  readonly nano: number;
  readonly unpriced: number;
  readonly cause: string | null;
}

const leave = query<Leaving, { open: number }>(({ db, sql, p }) =>
  db
    .updateTable('rootRun')
    .set({
      openRuns: sql<number>`open_runs - ${p('runs')}`,
      openGraphs: sql<number>`open_graphs - ${p('graphs')}`,
      openScripts: sql<number>`open_scripts - ${p('scripts')}`,
      completedRuns: sql<number>`completed_runs + ${p('completedRuns')}`,
      failedRuns: sql<number>`failed_runs + ${p('failedRuns')}`,
      completions: sql<number>`completions + ${p('completions')}`,
      endedTokens: sql<number>`ended_tokens + ${p('tokens')}`,
      endedNano: sql<number>`ended_nano + ${p('nano')}`,
      unpriced: sql<number>`unpriced + ${p('unpriced')}`,
      cause: sql<string | null>`coalesce(${p('cause')}, cause)`,
    })
    .where('id', '=', p('id'))
    .returning(sql<number>`open_runs + open_graphs + open_scripts`.as('open')),
);

const endWhenEmpty = query<{ id: string; atMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('rootRun')
    .set({ state: sql<string>`case when completions > 0 then 'completed' else 'failed' end`, endedAtMs: p('atMs'), heartbeatAtMs: p('atMs') })
    .where('id', '=', p('id'))
    .where(sql<boolean>`state = 'active'`)
    .where(sql<boolean>`open_runs + open_graphs + open_scripts <= 0`),
);

/** Ends work of a root, in the transaction that ends it; call it exactly once for each `enterRoot`. The last one ends the root. */
export async function leaveRoot(tx: Tx, { rootRunId: id, kind, failed, cause = null, tokens, costNano, atMs }: RootLeave): Promise<void> {
  const counts = countOf(kind);
  const completed = failed ? 0 : 1;
  const [left] = await tx.all(leave, {
    id,
    ...counts,
    completedRuns: counts.runs * completed,
    failedRuns: counts.runs * (1 - completed),
    completions: completed,
    tokens,
    nano: costNano ?? 0,
    unpriced: Number(costNano === null),
    cause,
  });
  if (left !== undefined && left.open <= 0) await tx.run(endWhenEmpty, { id, atMs });
}

const grow = query<{ id: string; tokens: number; nano: number; unpriced: number }>(({ db, sql, p }) =>
  db
    .updateTable('rootRun')
    .set({
      endedTokens: sql<number>`ended_tokens + ${p('tokens')}`,
      endedNano: sql<number>`ended_nano + ${p('nano')}`,
      unpriced: sql<number>`unpriced + ${p('unpriced')}`,
    })
    .where('id', '=', p('id')),
);

/** Adds calls that belong to a root run and to none of its work, in the transaction that books them; nothing for a root without a row. */
export async function growRoot(tx: Tx, input: RootSums & { readonly id: string }): Promise<void> {
  await tx.run(grow, input);
}

/** `growRoot` as an operation, called in the transaction of a turn that delegated. */
export const bookTurnOnRoot = operation('autonomy.bookTurn', growRoot);

const raise = query<{ id: string; tokens: number; nano: number }>(({ db, sql, p }) =>
  db
    .updateTable('rootRun')
    .set({
      spentTokens: sql<number>`case when spent_tokens > ended_tokens + ${p('tokens')} then spent_tokens else ended_tokens + ${p('tokens')} end`,
      spentNano: sql<number>`case when spent_nano > ended_nano + ${p('nano')} then spent_nano else ended_nano + ${p('nano')} end`,
    })
    .where('id', '=', p('id')),
);

/** Counts what the open turns of a root have cost, which a killed process had only in memory. Part of `abortOpenTurns`. */
export async function raiseSpent(tx: Tx, input: { readonly id: string; readonly tokens: number; readonly nano: number }): Promise<void> {
  await tx.run(raise, input);
}

const issue = query<Omit<NewLease, 'caps'> & { readonly caps: string }>(({ db, each }) =>
  db.insertInto('lease').values({
    ...each(['id', 'rootRunId', 'parentLeaseId', 'runId', 'agentId', 'principalId', 'caps', 'bearerDigest', 'issuedAtMs', 'expiresAtMs', 'bootId']),
    endedAtMs: null,
    revoked: 0,
  }),
);

const unrevoked = query<{ id: string }, { id: string }>(({ db, sql, p }) =>
  db
    .selectFrom('lease')
    .select('id')
    .where('id', '=', p('id'))
    .where(sql<boolean>`revoked = 0`)
    .forShare(),
);

/** Issues a lease to a run, in the transaction that accepts it, after `enterRoot`. Throws `denied` when the parent lease was revoked. */
export async function issueLease(tx: Tx, { caps, ...lease }: NewLease): Promise<void> {
  if (lease.parentLeaseId !== null && (await tx.get(unrevoked, { id: lease.parentLeaseId })) === undefined)
    throw new AppError('denied', 'The lease of the requesting run was revoked');
  await tx.run(issue, { ...lease, caps: caps.join(',') });
}

const endOne = query<{ leaseId: string; atMs: number }>(({ db, p }) =>
  db
    .updateTable('lease')
    .set({ endedAtMs: p('atMs') })
    .where('id', '=', p('leaseId'))
    .where('endedAtMs', 'is', null),
);

/** Ends the lease of a run or script, in the transaction that ends it; a lease that already ended stays unchanged. */
export async function endLease(tx: Tx, { leaseId, atMs }: { readonly leaseId: string; readonly atMs: number }): Promise<void> {
  await tx.run(endOne, { leaseId, atMs });
}
