import { AppError } from '../../kernel/app-error.ts';
import { appendAudit, type AuditRow } from '../../kernel/db/audit.ts';
import { operation, query, type Tx } from '../../kernel/db/operation.ts';

/** A job as it is stored; `parseJob` makes sense of it. */
export interface JobRow {
  /** `cj_<uuid>` */
  readonly id: string;
  readonly agentId: string;
  readonly name: string;
  readonly source: 'authored' | 'built_in';
  /** Who made it, and whose rights it runs with; `system` for built-in jobs. */
  readonly principalId: string;
  readonly tokenId: string;
  readonly scheduleJson: string;
  readonly payloadJson: string;
  readonly policiesJson: string;
  readonly state: 'scheduled' | 'paused' | 'one_shot_claimed' | 'one_shot_terminal';
  readonly pauseReason: 'operator' | 'dependency_errors' | null;
  /** Null when it has no further run. */
  readonly nextRunAtMs: number | null;
  /** `nextRunAtMs` and what it is spread by. */
  readonly dueAtMs: number | null;
  /** Nothing at this time or before it is ever claimed again, whatever the clock does. */
  readonly highWaterMs: number;
  readonly errors: number;
  /** The occurrence of the clock that runs; of a job that had its one run, the one that it was. */
  readonly activeExecutionId: string | null;
  readonly claimedForMs: number | null;
  readonly claimedAtMs: number | null;
  readonly endedAtMs: number | null;
  /** Grows with each change: what was planned for an earlier one is not done. */
  readonly revision: number;
  readonly createdAtMs: number;
}

export const jobColumns = [
  'id',
  'agent_id as agentId',
  'name',
  'source',
  'principal_id as principalId',
  'token_id as tokenId',
  'schedule_json as scheduleJson',
  'payload_json as payloadJson',
  'policies_json as policiesJson',
  'state',
  'pause_reason as pauseReason',
  'next_run_at_ms as nextRunAtMs',
  'due_at_ms as dueAtMs',
  'high_water_ms as highWaterMs',
  'errors',
  'active_execution_id as activeExecutionId',
  'claimed_for_ms as claimedForMs',
  'claimed_at_ms as claimedAtMs',
  'ended_at_ms as endedAtMs',
  'revision',
  'created_at_ms as createdAtMs',
] as const;

/** The jobs that a caller may see and change; null stands for all. */
export interface JobReach {
  readonly principalId: string | null;
  readonly agentIds: readonly string[] | null;
}

const within = (row: JobRow, { principalId, agentIds }: JobReach) =>
  (principalId === null || row.principalId === principalId) && (agentIds === null || agentIds.includes(row.agentId));

/** The version of the tables' content; strict readers refuse another one. */
export const formatVersion = 1;
/** How long a job is kept that had its one run; its name is free again then. */
const endedKeptMs = 7 * 24 * 60 * 60_000;

const insertStore = query<{ agentId: string; seed: string; formatVersion: number; atMs: number }>(({ db, p }) =>
  db
    .insertInto('cron_store')
    .values({ agent_id: p('agentId'), seed: p('seed'), format_version: p('formatVersion'), created_at_ms: p('atMs') })
    .onConflict((conflict) => conflict.doNothing()),
);

/** The store of an agent begins with its first job. Part of what adds jobs or empties a store. */
export async function beginStore(tx: Tx, input: { readonly agentId: string; readonly seed: string; readonly atMs: number }): Promise<void> {
  await tx.run(insertStore, { ...input, formatVersion });
}

const insertRow = query<JobRow>(({ db, p }) =>
  db
    .insertInto('cron_job')
    .values({
      id: p('id'),
      agent_id: p('agentId'),
      name: p('name'),
      source: p('source'),
      principal_id: p('principalId'),
      token_id: p('tokenId'),
      schedule_json: p('scheduleJson'),
      payload_json: p('payloadJson'),
      policies_json: p('policiesJson'),
      state: p('state'),
      pause_reason: p('pauseReason'),
      next_run_at_ms: p('nextRunAtMs'),
      due_at_ms: p('dueAtMs'),
      high_water_ms: p('highWaterMs'),
      errors: p('errors'),
      active_execution_id: p('activeExecutionId'),
      claimed_for_ms: p('claimedForMs'),
      claimed_at_ms: p('claimedAtMs'),
      ended_at_ms: p('endedAtMs'),
      revision: p('revision'),
      created_at_ms: p('createdAtMs'),
    })
    .onConflict((conflict) => conflict.columns(['agent_id', 'principal_id', 'name']).doNothing()),
);

const deleteEnded = query<{ agentId: string; beforeMs: number }>(({ db, p }) =>
  db.deleteFrom('cron_job').where('agent_id', '=', p('agentId')).where('ended_at_ms', '<', p('beforeMs')),
);

const countOpen = query<{ agentId: string }, { count: number }>(({ db, sql, p }) =>
  db
    .selectFrom('cron_job')
    .select(sql<number>`count(*)`.as('count'))
    .where('agent_id', '=', p('agentId'))
    .where('source', '=', 'authored')
    .where('state', '<>', 'one_shot_terminal'),
);

/** Adds an authored job; `conflict` when the name is taken, `precondition_failed` when the agent has too many. */
export const addJob = operation(
  'cron.add',
  async (tx, { job, seed, maxJobs, audit }: { job: JobRow; seed: string; maxJobs: number; audit: AuditRow }): Promise<void> => {
    await tx.run(deleteEnded, { agentId: job.agentId, beforeMs: job.createdAtMs - endedKeptMs });
    const open = await tx.get(countOpen, { agentId: job.agentId });
    if ((open?.count ?? 0) >= maxJobs)
      throw new AppError('precondition_failed', `Agent ${job.agentId} has ${maxJobs} jobs already, which is the limit`);
    await beginStore(tx, { agentId: job.agentId, seed, atMs: job.createdAtMs });
    const { changes } = await tx.run(insertRow, job);
    if (changes === 0) throw nameTaken(job.name);
    await appendAudit(tx, audit);
  },
);

const nameTaken = (name: string) => new AppError('conflict', `A job of this name exists already: ${name}`, { param: 'name' });

/** Puts built-in jobs where they are wanted and are not; gives how many were added. Those that are wanted no more go. */
export const reconcileBuiltIns = operation(
  'cron.reconcileBuiltIns',
  async (
    tx,
    { wanted, agentIds, seed, atMs }: { wanted: readonly JobRow[]; agentIds: readonly string[]; seed: string; atMs: number },
  ): Promise<number> => {
    const keep = new Set(wanted.map(({ agentId, name }) => `${agentId} ${name}`));
    const present = await tx.build<JobRow>((db) =>
      db
        .selectFrom('cron_job')
        .select(jobColumns)
        .where('source', '=', 'built_in')
        .where('agent_id', 'in', [...agentIds]),
    );
    const schedules = new Map<string, string>();
    for (const row of present) {
      const key = `${row.agentId} ${row.name}`;
      const same = wanted.find(({ agentId, name }) => `${agentId} ${name}` === key);
      if (keep.has(key) && same?.scheduleJson === row.scheduleJson) schedules.set(key, row.scheduleJson);
      else if (row.activeExecutionId === null) await tx.run(deleteRow, { id: row.id });
      else schedules.set(key, row.scheduleJson);
    }
    let added = 0;
    for (const job of wanted) {
      if (schedules.has(`${job.agentId} ${job.name}`)) continue;
      await beginStore(tx, { agentId: job.agentId, seed, atMs });
      added += (await tx.run(insertRow, job)).changes;
    }
    return added;
  },
);

export interface JobChange {
  readonly id: string;
  readonly revision: number;
  readonly name: string;
  readonly scheduleJson: string;
  readonly payloadJson: string;
  readonly policiesJson: string;
  readonly state: 'scheduled' | 'paused';
  readonly pauseReason: JobRow['pauseReason'];
  readonly nextRunAtMs: number | null;
  readonly dueAtMs: number | null;
  readonly errors: number;
}

const sameName = query<{ agentId: string; principalId: string; name: string; id: string }, { id: string }>(({ db, p }) =>
  db
    .selectFrom('cron_job')
    .select('id')
    .where('agent_id', '=', p('agentId'))
    .where('principal_id', '=', p('principalId'))
    .where('name', '=', p('name'))
    .where('id', '<>', p('id')),
);

const updateRow = query<JobChange>(({ db, sql, p }) =>
  db
    .updateTable('cron_job')
    .set({
      name: p('name'),
      schedule_json: p('scheduleJson'),
      payload_json: p('payloadJson'),
      policies_json: p('policiesJson'),
      state: p('state'),
      pause_reason: p('pauseReason'),
      next_run_at_ms: p('nextRunAtMs'),
      due_at_ms: p('dueAtMs'),
      errors: p('errors'),
      revision: sql`revision + 1`,
    })
    .where('id', '=', p('id'))
    .where('revision', '=', p('revision')),
);

/** False when the job changed in between: the caller reads it again. `conflict` when the name is taken. */
export const changeJob = operation(
  'cron.change',
  async (tx, { change, row, audit }: { change: JobChange; row: Pick<JobRow, 'agentId' | 'principalId'>; audit: AuditRow }): Promise<boolean> => {
    const { agentId, principalId } = row;
    if ((await tx.get(sameName, { agentId, principalId, name: change.name, id: change.id })) !== undefined) throw nameTaken(change.name);
    const { changes } = await tx.run(updateRow, change);
    if (changes > 0) await appendAudit(tx, audit);
    return changes > 0;
  },
);

const deleteRow = query<{ id: string }>(({ db, p }) => db.deleteFrom('cron_job').where('id', '=', p('id')));
const deleteRuns = query<{ id: string }>(({ db, p }) => db.deleteFrom('cron_occurrence').where('job_id', '=', p('id')));
const openRun = query<{ id: string }, { executionId: string }>(({ db, sql, p }) =>
  db
    .selectFrom('cron_occurrence')
    .select('execution_id as executionId')
    .where('job_id', '=', p('id'))
    .where(sql<boolean>`terminal_at_ms IS NULL`)
    .limit(1),
);

/** Removes a job and the record of its runs; `precondition_failed` while one runs. */
export const removeJob = operation('cron.remove', async (tx, { id, name, audit }: { id: string; name: string; audit: AuditRow }): Promise<void> => {
  const running = await tx.get(openRun, { id });
  if (running !== undefined) throw new AppError('precondition_failed', `Job ${name} runs at the moment (${running.executionId})`);
  const { changes } = await tx.run(deleteRow, { id });
  if (changes === 0) throw new AppError('not_found', 'Job not found', { param: 'jobName' });
  await tx.run(deleteRuns, { id });
  await appendAudit(tx, audit);
});

const agentTables = ['cron_job', 'cron_occurrence', 'cron_store', 'cron_intent'] as const;

/** The agent is gone, and everything of its schedule with it. */
export const removeAgentJobs = operation('cron.removeAgent', async (tx, { agentId }: { readonly agentId: string }): Promise<void> => {
  for (const table of agentTables) await tx.build((db) => db.deleteFrom(table).where('agent_id', '=', agentId));
});

const byId = query<{ id: string }, JobRow>(({ db, p }) => db.selectFrom('cron_job').select(jobColumns).where('id', '=', p('id')));

/** The row of a job, for operations whose caller has looked at who asks. */
export const readJob = (tx: Tx, id: string): Promise<JobRow | undefined> => tx.get(byId, { id });

export interface JobSearch extends JobReach {
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  /** An id is taken in the place of the name. */
  readonly nameMayBeId?: boolean;
  readonly agentId?: string | undefined;
}

/** The jobs within reach that are meant, at most eleven; what is out of reach is decided here, so that it answers like what is not there. */
export const findJobs = operation('cron.find', async (tx, { id, name, nameMayBeId, agentId, ...reach }: JobSearch): Promise<JobRow[]> => {
  const direct = id ?? (nameMayBeId === true ? name : undefined);
  const row = direct === undefined ? undefined : await readJob(tx, direct);
  if (row !== undefined && within(row, reach) && (agentId === undefined || row.agentId === agentId))
    return id !== undefined && name !== undefined && row.name !== name ? [] : [row];
  if (id !== undefined || name === undefined || reach.agentIds?.length === 0) return [];
  return tx.build<JobRow>((db) => {
    let rows = db.selectFrom('cron_job').select(jobColumns).where('name', '=', name);
    if (agentId !== undefined) rows = rows.where('agent_id', '=', agentId);
    if (reach.agentIds !== null) rows = rows.where('agent_id', 'in', [...reach.agentIds]);
    if (reach.principalId !== null) rows = rows.where('principal_id', '=', reach.principalId);
    return rows.orderBy('id').limit(11);
  });
});

export interface JobPage extends JobReach {
  readonly agentId?: string | undefined;
  readonly offset: number;
  readonly limit: number;
}

/** A page of jobs in the order of agents and names, and how many there are. */
export const listJobs = operation('cron.list', async (tx, page: JobPage): Promise<{ rows: JobRow[]; total: number }> => {
  if (page.agentIds?.length === 0) return { rows: [], total: 0 };
  // oxlint-disable-next-line typescript/no-explicit-any -- the builder's own type names the tables
  const meant = (from: any) => {
    let rows = from;
    if (page.agentId !== undefined) rows = rows.where('agent_id', '=', page.agentId);
    if (page.agentIds !== null) rows = rows.where('agent_id', 'in', [...page.agentIds]);
    if (page.principalId !== null) rows = rows.where('principal_id', '=', page.principalId);
    return rows;
  };
  const [count] = await tx.build<{ total: number }>((db, sql) => meant(db.selectFrom('cron_job').select(sql<number>`count(*)`.as('total'))));
  const rows = await tx.build<JobRow>((db) =>
    meant(db.selectFrom('cron_job').select(jobColumns)).orderBy('agent_id').orderBy('name').orderBy('id').limit(page.limit).offset(page.offset),
  );
  return { rows, total: count?.total ?? 0 };
});

export interface DueSearch {
  readonly atMs: number;
  /** Before this, a time is caught up with. */
  readonly lateAtMs: number;
  readonly limit: number;
  readonly lateLimit: number;
  /** Agents whose jobs are left alone. */
  readonly except: readonly string[];
}

export interface DueJobs {
  readonly onTime: JobRow[];
  readonly late: JobRow[];
  /** When the next one is due that is not now. */
  readonly nextAtMs: number | null;
}

/** Holds exactly the jobs that wait for their time; a state that is bound as a parameter would not be found in its index. */
const waits = `state = 'scheduled' AND active_execution_id IS NULL AND due_at_ms IS NOT NULL`;

/** Jobs that are due, the longest due first, and when the next one is. What it costs does not grow with the jobs that are not due. */
export const dueJobs = operation('cron.due', async (tx, { atMs, lateAtMs, limit, lateLimit, except }: DueSearch): Promise<DueJobs> => {
  const some = (afterMs: number, untilMs: number, count: number) =>
    tx.build<JobRow>((db, sql) => {
      const due = db
        .selectFrom('cron_job')
        .select(jobColumns)
        .where(sql.raw<boolean>(waits))
        .where('due_at_ms', '>', afterMs)
        .where('due_at_ms', '<=', untilMs);
      return (except.length > 0 ? due.where('agent_id', 'not in', [...except]) : due).orderBy('due_at_ms').orderBy('id').limit(count);
    });
  const [next] = await some(atMs, Number.MAX_SAFE_INTEGER, 1);
  return { onTime: await some(lateAtMs, atMs, limit), late: await some(-1, lateAtMs, lateLimit), nextAtMs: next?.dueAtMs ?? null };
});

export interface OverdueSearch extends Pick<JobReach, 'principalId'> {
  readonly agentId: string;
  readonly atMs: number;
  readonly limit: number;
}

/** What is due of one agent and one caller, in the order of the times. */
export const overdueJobs = operation('cron.overdue', async (tx, { agentId, principalId, atMs, limit }: OverdueSearch): Promise<JobRow[]> =>
  tx.build((db, sql) => {
    const due = db
      .selectFrom('cron_job')
      .select(jobColumns)
      .where(sql.raw<boolean>(waits))
      .where('agent_id', '=', agentId)
      .where('next_run_at_ms', '<=', atMs);
    return (principalId === null ? due : due.where('principal_id', '=', principalId)).orderBy('next_run_at_ms').orderBy('id').limit(limit);
  }),
);

/** For the strict reading at start: all rows, page by page. */
export const jobsAfter = operation('cron.after', async (tx, input: { readonly afterId: string; readonly limit: number }): Promise<JobRow[]> =>
  tx.build((db) => db.selectFrom('cron_job').select(jobColumns).where('id', '>', input.afterId).orderBy('id').limit(input.limit)),
);

export const cronJobOperations = [
  addJob,
  reconcileBuiltIns,
  changeJob,
  removeJob,
  removeAgentJobs,
  findJobs,
  listJobs,
  dueJobs,
  overdueJobs,
  jobsAfter,
];
