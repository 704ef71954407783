import type { NotNull } from 'kysely';
import { operation } from '../../../../kernel/db/operation.ts';
import { jobColumns, type JobRow, readJob } from '../store.ts';

/** The jobs that a caller may see and change; null means all. */
export interface JobReach {
  readonly principalId: string | null;
  readonly agentIds: readonly string[] | null;
}

const within = (row: JobRow, { principalId, agentIds }: JobReach) =>
  (principalId === null || row.principalId === principalId) && (agentIds === null || agentIds.includes(row.agentId));

export interface JobSearch extends JobReach {
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  /** Accepts an id as the name. */
  readonly nameMayBeId?: boolean;
  readonly agentId?: string | undefined;
}

/** Finds at most eleven matching jobs within reach. Filtering here makes inaccessible jobs indistinguishable from unknown ones. */
export const findJobs = operation('cron.find', async (tx, { id, name, nameMayBeId, agentId, ...reach }: JobSearch): Promise<JobRow[]> => {
  const direct = id ?? (nameMayBeId === true ? name : undefined);
  const row = direct === undefined ? undefined : await readJob(tx, direct);
  if (row !== undefined && within(row, reach) && (agentId === undefined || row.agentId === agentId))
    return id !== undefined && name !== undefined && row.name !== name ? [] : [row];
  if (id !== undefined || name === undefined || reach.agentIds?.length === 0) return [];
  return tx.build<JobRow>((db) => {
    let rows = db.selectFrom('cronJob').select(jobColumns).where('name', '=', name);
    if (agentId !== undefined) rows = rows.where('agentId', '=', agentId);
    if (reach.agentIds !== null) rows = rows.where('agentId', 'in', [...reach.agentIds]);
    if (reach.principalId !== null) rows = rows.where('principalId', '=', reach.principalId);
    return rows.orderBy('id').limit(11);
  });
});

/** Returns the mean price in US dollars of the agent's last twenty turns with a known price; null when there are none. */
export const averageTurnCost = operation('cron.turnCost', async (tx, { agentId }: { readonly agentId: string }): Promise<number | null> => {
  const turns = await tx.build<{ nano: number }>((db) =>
    db
      .selectFrom('turn')
      .select('costNano as nano')
      .where('agentId', '=', agentId)
      .where('costNano', 'is not', null)
      .$narrowType<{ nano: NotNull }>()
      .orderBy('startedAtMs', 'desc')
      .limit(20),
  );
  return turns.length === 0 ? null : turns.reduce((sum, { nano }) => sum + nano, 0) / turns.length / 1e9;
});

export interface JobPage extends JobReach {
  readonly agentId?: string | undefined;
  readonly offset: number;
  readonly limit: number;
}

/** Returns a page of jobs ordered by agent and name, with the total count. */
export const listJobs = operation('cron.list', async (tx, page: JobPage): Promise<{ rows: JobRow[]; total: number }> => {
  if (page.agentIds?.length === 0) return { rows: [], total: 0 };
  // oxlint-disable-next-line typescript/no-explicit-any -- the builder's own type names the tables
  const meant = (from: any) => {
    let rows = from;
    if (page.agentId !== undefined) rows = rows.where('agentId', '=', page.agentId);
    if (page.agentIds !== null) rows = rows.where('agentId', 'in', [...page.agentIds]);
    if (page.principalId !== null) rows = rows.where('principalId', '=', page.principalId);
    return rows;
  };
  const [count] = await tx.build<{ total: number }>((db, sql) => meant(db.selectFrom('cronJob').select(sql<number>`count(*)`.as('total'))));
  const rows = await tx.build<JobRow>((db) =>
    meant(db.selectFrom('cronJob').select(jobColumns)).orderBy('agentId').orderBy('name').orderBy('id').limit(page.limit).offset(page.offset),
  );
  return { rows, total: count?.total ?? 0 };
});

/** Returns the next page of all rows, for the strict check at start. */
export const jobsAfter = operation('cron.after', async (tx, input: { readonly afterId: string; readonly limit: number }): Promise<JobRow[]> =>
  tx.build((db) => db.selectFrom('cronJob').select(jobColumns).where('id', '>', input.afterId).orderBy('id').limit(input.limit)),
);

export const cronSearchOperations = [averageTurnCost, findJobs, listJobs, jobsAfter];
