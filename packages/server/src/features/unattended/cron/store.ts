import { AppError } from '../../../kernel/app-error.ts';
import { appendAudit, type AuditRow } from '../../../kernel/db/audit.ts';
import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import { refuseDuringReset } from './jobs/reset-guard.ts';

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

/** The version of the tables' content; strict readers refuse another one. */
export const formatVersion = 1;
/** How long a job is kept that had its one run, and how many of one agent; its name is free again then. */
const endedKeptMs = 7 * 24 * 60 * 60_000;
const endedKept = 200;

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

const insertRow = query<JobRow & { readonly byAgent: 0 | 1 }>(({ db, p }) =>
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
      by_agent: p('byAgent'),
    })
    .onConflict((conflict) => conflict.columns(['agent_id', 'principal_id', 'name']).doNothing()),
);

const deleteEnded = query<{ agentId: string; beforeMs: number }>(({ db, p }) =>
  db.deleteFrom('cron_job').where('agent_id', '=', p('agentId')).where('ended_at_ms', '<', p('beforeMs')),
);

const deleteEndedBeyond = query<{ agentId: string; kept: number }>(({ db, sql, p }) =>
  db
    .deleteFrom('cron_job')
    .where(
      sql<boolean>`id in (select id from cron_job where agent_id = ${p('agentId')} and ended_at_ms is not null order by ended_at_ms desc limit -1 offset ${p('kept')})`,
    ),
);

const countOpen = query<{ agentId: string }, { count: number }>(({ db, sql, p }) =>
  db
    .selectFrom('cron_job')
    .select(sql<number>`count(*)`.as('count'))
    .where('agent_id', '=', p('agentId'))
    .where('source', '=', 'authored')
    .where('state', '<>', 'one_shot_terminal'),
);

const countByAgent = query<{ agentId: string }, { count: number }>(({ db, sql, p }) =>
  db
    .selectFrom('cron_job')
    .select(sql<number>`count(*)`.as('count'))
    .where('agent_id', '=', p('agentId'))
    .where('by_agent', '=', 1)
    .where('state', '<>', 'one_shot_terminal'),
);

export interface NewJob {
  readonly job: JobRow;
  readonly seed: string;
  readonly ageNowMs: number;
  readonly maxJobs: number;
  /** Of a job that the agent makes itself: how many of these it may have. */
  readonly selfMax?: number;
  readonly audit: AuditRow;
}

/** Adds an authored job; `conflict` when the name is taken, `precondition_failed` when the agent has too many. */
export const addJob = operation('cron.add', async (tx, { job, seed, ageNowMs, maxJobs, selfMax, audit }: NewJob): Promise<void> => {
  await refuseDuringReset(tx, job.agentId);
  await tx.run(deleteEnded, { agentId: job.agentId, beforeMs: ageNowMs - endedKeptMs });
  await tx.run(deleteEndedBeyond, { agentId: job.agentId, kept: endedKept });
  const open = await tx.get(countOpen, { agentId: job.agentId });
  if ((open?.count ?? 0) >= maxJobs)
    throw new AppError('precondition_failed', `Agent ${job.agentId} has ${maxJobs} jobs already, which is the limit`);
  if (selfMax !== undefined && ((await tx.get(countByAgent, { agentId: job.agentId }))?.count ?? 0) >= selfMax)
    throw new AppError(
      'precondition_failed',
      `Agent ${job.agentId} has made ${selfMax} jobs itself, which is the limit (autonomy.guards.cronSelfMax); remove one that is not needed`,
    );
  await beginStore(tx, { agentId: job.agentId, seed, atMs: job.createdAtMs });
  const { changes } = await tx.run(insertRow, { ...job, byAgent: selfMax === undefined ? 0 : 1 });
  if (changes === 0) throw nameTaken(job.name);
  await appendAudit(tx, audit);
});

const nameTaken = (name: string) => new AppError('conflict', `A job of this name exists already: ${name}`, { param: 'name' });

/** Puts built-in jobs where they are wanted and are not; gives how many were added. Those that are wanted no more go. */
export const reconcileBuiltIns = operation(
  'cron.reconcileBuiltIns',
  async (
    tx,
    { wanted, agentIds, seed, atMs }: { wanted: readonly JobRow[]; agentIds: readonly string[]; seed: string; atMs: number },
  ): Promise<number> => {
    const schedulesWanted = new Map(wanted.map(({ agentId, name, scheduleJson }) => [`${agentId} ${name}`, scheduleJson]));
    const present = await tx.build<JobRow>((db) =>
      db
        .selectFrom('cron_job')
        .select(jobColumns)
        .where('source', '=', 'built_in')
        .where('agent_id', 'in', [...agentIds]),
    );
    const kept = new Set<string>();
    for (const row of present) {
      const key = `${row.agentId} ${row.name}`;
      if (schedulesWanted.get(key) === row.scheduleJson || row.activeExecutionId !== null) kept.add(key);
      else await tx.run(deleteRow, { id: row.id });
    }
    let added = 0;
    for (const job of wanted) {
      if (kept.has(`${job.agentId} ${job.name}`)) continue;
      await beginStore(tx, { agentId: job.agentId, seed, atMs });
      added += (await tx.run(insertRow, { ...job, byAgent: 0 })).changes;
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
    await refuseDuringReset(tx, agentId);
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
    // One that waits for its provider has no record then, and does nothing more.
    .where(sql<boolean>`not exists (select 1 from work_item where kind = 'cron' and work_key = execution_id and state = 'accepted'
      and waiting_json is not null)`)
    .limit(1),
);

/** Removes a job and the record of its runs; `precondition_failed` while one runs. */
export const removeJob = operation(
  'cron.remove',
  async (tx, input: { id: string; agentId: string; name: string; audit: AuditRow }): Promise<void> => {
    const { id, agentId, name, audit } = input;
    await refuseDuringReset(tx, agentId);
    const running = await tx.get(openRun, { id });
    if (running !== undefined) throw new AppError('precondition_failed', `Job ${name} runs at the moment (${running.executionId})`);
    const { changes } = await tx.run(deleteRow, { id });
    if (changes === 0) throw new AppError('not_found', 'Job not found', { param: 'jobName' });
    await tx.run(deleteRuns, { id });
    await appendAudit(tx, audit);
  },
);

const agentTables = ['cron_job', 'cron_occurrence', 'cron_store', 'cron_intent', 'cron_archive'] as const;

/** The agent is gone, and everything of its schedule with it. */
export const removeAgentJobs = operation('cron.removeAgent', async (tx, { agentId }: { readonly agentId: string }): Promise<void> => {
  for (const table of agentTables) await tx.build((db) => db.deleteFrom(table).where('agent_id', '=', agentId));
});

const byId = query<{ id: string }, JobRow>(({ db, p }) => db.selectFrom('cron_job').select(jobColumns).where('id', '=', p('id')));

/** The row of a job, for operations whose caller has looked at who asks. */
export const readJob = (tx: Tx, id: string): Promise<JobRow | undefined> => tx.get(byId, { id });

export const findJob = operation('cron.findJob', (tx, { id }: { readonly id: string }) => readJob(tx, id));

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

export interface OverdueSearch {
  readonly agentId: string;
  /** Null stands for all. */
  readonly principalId: string | null;
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

export const cronJobOperations = [addJob, findJob, reconcileBuiltIns, changeJob, removeJob, removeAgentJobs, dueJobs, overdueJobs];
