import { AppError } from '../../../kernel/app-error.ts';
import { appendAudit, type AuditRow } from '../../../kernel/db/audit.ts';
import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import { refuseDuringReset } from './jobs/reset-guard.ts';

/** A stored job; `parseJob` interprets it. */
export interface JobRow {
  /** `cj_<uuid>` */
  readonly id: string;
  readonly agentId: string;
  readonly name: string;
  readonly source: 'authored' | 'built_in';
  /** The creator, whose permissions the job has; `system` for built-in jobs. */
  readonly principalId: string;
  readonly tokenId: string;
  readonly scheduleJson: string;
  readonly payloadJson: string;
  readonly policiesJson: string;
  readonly state: 'scheduled' | 'paused' | 'one_shot_claimed' | 'one_shot_terminal';
  readonly pauseReason: 'operator' | 'dependency_errors' | null;
  /** Null when there is no further run. */
  readonly nextRunAtMs: number | null;
  /** `nextRunAtMs` plus the job's stagger offset. */
  readonly dueAtMs: number | null;
  /** Times up to this one are never claimed again, whatever the clock does. */
  readonly highWaterMs: number;
  readonly errors: number;
  /** The running scheduled occurrence; for a finished one-shot job, its only occurrence. */
  readonly activeExecutionId: string | null;
  readonly claimedForMs: number | null;
  readonly claimedAtMs: number | null;
  readonly endedAtMs: number | null;
  /** Incremented by each change; plans made for an earlier revision are dropped. */
  readonly revision: number;
  readonly createdAtMs: number;
  /** Author of a job that was added in a chat. */
  readonly authorJson: string | null;
}

export const jobColumns = [
  'id',
  'agentId',
  'name',
  'source',
  'principalId',
  'tokenId',
  'scheduleJson',
  'payloadJson',
  'policiesJson',
  'state',
  'pauseReason',
  'nextRunAtMs',
  'dueAtMs',
  'highWaterMs',
  'errors',
  'activeExecutionId',
  'claimedForMs',
  'claimedAtMs',
  'endedAtMs',
  'revision',
  'createdAtMs',
  'authorJson',
] as const;

/** Version of the tables' content; strict readers reject any other. */
export const formatVersion = 1;
/** How long finished one-shot jobs are kept, and how many per agent; afterwards their names are free again. */
const endedKeptMs = 7 * 24 * 60 * 60_000;
const endedKept = 200;

const insertStore = query<{ agentId: string; seed: string; formatVersion: number; atMs: number }>(({ db, p }) =>
  db
    .insertInto('cronStore')
    .values({ agentId: p('agentId'), seed: p('seed'), formatVersion: p('formatVersion'), createdAtMs: p('atMs') })
    .onConflict((conflict) => conflict.doNothing()),
);

/** Creates the store of an agent with its first job. Part of operations that add jobs or reset a store. */
export async function beginStore(tx: Tx, input: { readonly agentId: string; readonly seed: string; readonly atMs: number }): Promise<void> {
  await tx.run(insertStore, { ...input, formatVersion });
}

const insertRow = query<JobRow & { readonly byAgent: 0 | 1 }>(({ db, each }) =>
  db
    .insertInto('cronJob')
    .values(each([...jobColumns, 'byAgent']))
    .onConflict((conflict) => conflict.columns(['agentId', 'principalId', 'name']).doNothing()),
);

const deleteEnded = query<{ agentId: string; beforeMs: number }>(({ db, p }) =>
  db.deleteFrom('cronJob').where('agentId', '=', p('agentId')).where('endedAtMs', '<', p('beforeMs')),
);

const deleteEndedBeyond = query<{ agentId: string; kept: number }>(({ db, p }) =>
  db.deleteFrom('cronJob').where(
    'id',
    'in',
    db
      .selectFrom('cronJob')
      .select('id')
      .where('agentId', '=', p('agentId'))
      .where('endedAtMs', 'is not', null)
      .orderBy('endedAtMs', 'desc')
      // An offset needs a limit.
      .limit(Number.MAX_SAFE_INTEGER)
      .offset(p('kept')),
  ),
);

const countOpen = query<{ agentId: string }, { count: number }>(({ db, sql, p }) =>
  db
    .selectFrom('cronJob')
    .select(sql<number>`count(*)`.as('count'))
    .where('agentId', '=', p('agentId'))
    .where('source', '=', 'authored')
    .where('state', '<>', 'one_shot_terminal'),
);

const countByAgent = query<{ agentId: string }, { count: number }>(({ db, sql, p }) =>
  db
    .selectFrom('cronJob')
    .select(sql<number>`count(*)`.as('count'))
    .where('agentId', '=', p('agentId'))
    .where('byAgent', '=', 1)
    .where('state', '<>', 'one_shot_terminal'),
);

export interface NewJob {
  readonly job: JobRow;
  readonly seed: string;
  readonly ageNowMs: number;
  readonly maxJobs: number;
  /** Set for a job that the agent creates for itself: maximum number of such jobs. */
  readonly selfMax?: number;
  readonly audit: AuditRow;
}

/** Adds an authored job; throws `conflict` when the name is taken, `precondition_failed` when the agent has too many. */
export const addJob = operation('cron.add', async (tx, { job, seed, ageNowMs, maxJobs, selfMax, audit }: NewJob): Promise<void> => {
  await refuseDuringReset(tx, job.agentId);
  await tx.run(deleteEnded, { agentId: job.agentId, beforeMs: ageNowMs - endedKeptMs });
  await tx.run(deleteEndedBeyond, { agentId: job.agentId, kept: endedKept });
  const open = await tx.get(countOpen, { agentId: job.agentId });
  if ((open?.count ?? 0) >= maxJobs) throw new AppError('precondition_failed', `Agent ${job.agentId} already has the maximum of ${maxJobs} jobs`);
  if (selfMax !== undefined && ((await tx.get(countByAgent, { agentId: job.agentId }))?.count ?? 0) >= selfMax)
    throw new AppError(
      'precondition_failed',
      `Agent ${job.agentId} has already created the maximum of ${selfMax} jobs for itself (autonomy.guards.cronSelfMax); remove one first`,
    );
  await beginStore(tx, { agentId: job.agentId, seed, atMs: job.createdAtMs });
  const { changes } = await tx.run(insertRow, { ...job, byAgent: selfMax === undefined ? 0 : 1 });
  if (changes === 0) throw nameTaken(job.name);
  await appendAudit(tx, audit);
});

const nameTaken = (name: string) => new AppError('conflict', `A job with this name already exists: ${name}`, { param: 'name' });

/** Adds missing built-in jobs and removes unwanted ones; returns how many were added. */
export const reconcileBuiltIns = operation(
  'cron.reconcileBuiltIns',
  async (
    tx,
    { wanted, agentIds, seed, atMs }: { wanted: readonly JobRow[]; agentIds: readonly string[]; seed: string; atMs: number },
  ): Promise<number> => {
    const schedulesWanted = new Map(wanted.map(({ agentId, name, scheduleJson }) => [`${agentId} ${name}`, scheduleJson]));
    const present = await tx.build<JobRow>((db) =>
      db
        .selectFrom('cronJob')
        .select(jobColumns)
        .where('source', '=', 'built_in')
        .where('agentId', 'in', [...agentIds]),
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
  readonly authorJson: string | null;
}

const sameName = query<{ agentId: string; principalId: string; name: string; id: string }, { id: string }>(({ db, p }) =>
  db
    .selectFrom('cronJob')
    .select('id')
    .where('agentId', '=', p('agentId'))
    .where('principalId', '=', p('principalId'))
    .where('name', '=', p('name'))
    .where('id', '<>', p('id')),
);

const updateRow = query<JobChange>(({ db, sql, p }) =>
  db
    .updateTable('cronJob')
    .set({
      name: p('name'),
      scheduleJson: p('scheduleJson'),
      payloadJson: p('payloadJson'),
      policiesJson: p('policiesJson'),
      state: p('state'),
      pauseReason: p('pauseReason'),
      nextRunAtMs: p('nextRunAtMs'),
      dueAtMs: p('dueAtMs'),
      errors: p('errors'),
      authorJson: p('authorJson'),
      revision: sql<number>`revision + 1`,
    })
    .where('id', '=', p('id'))
    .where('revision', '=', p('revision')),
);

/** Changes a job; returns false when it was changed concurrently, so the caller reads it again. Throws `conflict` when the name is taken. */
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

const deleteRow = query<{ id: string }>(({ db, p }) => db.deleteFrom('cronJob').where('id', '=', p('id')));
const deleteRuns = query<{ id: string }>(({ db, p }) => db.deleteFrom('cronOccurrence').where('jobId', '=', p('id')));
const deleteQueued = query<{ id: string }>(({ db, p }) => db.deleteFrom('cronBackfill').where('jobId', '=', p('id')));
const openRun = query<{ id: string }, { executionId: string }>(({ db, sql, p }) =>
  db
    .selectFrom('cronOccurrence')
    .select('executionId')
    .where('jobId', '=', p('id'))
    .where(sql<boolean>`terminal_at_ms IS NULL`)
    // A run waiting for its provider loses its record here and then does nothing.
    .where(sql<boolean>`not exists (select 1 from work_item where kind = 'cron' and work_key = execution_id and state = 'accepted'
      and waiting_json is not null)`)
    .limit(1),
);

/** Removes a job and the records of its runs; throws `precondition_failed` while one is running. */
export const removeJob = operation(
  'cron.remove',
  async (tx, input: { id: string; agentId: string; name: string; audit: AuditRow }): Promise<void> => {
    const { id, agentId, name, audit } = input;
    await refuseDuringReset(tx, agentId);
    const running = await tx.get(openRun, { id });
    if (running !== undefined) throw new AppError('precondition_failed', `Job ${name} is running (${running.executionId})`);
    const { changes } = await tx.run(deleteRow, { id });
    if (changes === 0) throw new AppError('not_found', 'Job not found', { param: 'jobName' });
    await tx.run(deleteRuns, { id });
    await tx.run(deleteQueued, { id });
    await appendAudit(tx, audit);
  },
);

const agentTables = ['cronJob', 'cronOccurrence', 'cronBackfill', 'cronStore', 'cronIntent', 'cronArchive'] as const;

/** Removes the whole schedule of a deleted agent. */
export const removeAgentJobs = operation('cron.removeAgent', async (tx, { agentId }: { readonly agentId: string }): Promise<void> => {
  for (const table of agentTables) await tx.build((db) => db.deleteFrom(table).where('agentId', '=', agentId));
});

const byId = query<{ id: string }, JobRow>(({ db, p }) => db.selectFrom('cronJob').select(jobColumns).where('id', '=', p('id')));

/** Returns the row of a job, for operations whose caller has checked access. */
export const readJob = (tx: Tx, id: string): Promise<JobRow | undefined> => tx.get(byId, { id });

const byIdForUpdate = query<{ id: string }, JobRow>(({ db, p }) => db.selectFrom('cronJob').select(jobColumns).where('id', '=', p('id')).forUpdate());

/** `readJob` for operations that change the job depending on its state. */
export const lockJob = (tx: Tx, id: string): Promise<JobRow | undefined> => tx.get(byIdForUpdate, { id });

export const findJob = operation('cron.findJob', (tx, { id }: { readonly id: string }) => readJob(tx, id));

export interface DueSearch {
  readonly atMs: number;
  /** Jobs due before this time are catch-ups. */
  readonly lateAtMs: number;
  readonly limit: number;
  readonly lateLimit: number;
  /** Agents whose jobs must not start. */
  readonly except: readonly string[];
}

export interface DueJobs {
  readonly onTime: JobRow[];
  readonly late: JobRow[];
  /** When the next job becomes due. */
  readonly nextAtMs: number | null;
}

/** Matches exactly the jobs waiting for their time; binding the state as a parameter would not use the index. */
const isWaiting = `state = 'scheduled' AND active_execution_id IS NULL AND due_at_ms IS NOT NULL`;

/** Returns due jobs, longest overdue first, and the next due time. The cost does not depend on the number of jobs not due. */
export const dueJobs = operation('cron.due', async (tx, { atMs, lateAtMs, limit, lateLimit, except }: DueSearch): Promise<DueJobs> => {
  const some = (afterMs: number, untilMs: number, count: number) =>
    tx.build<JobRow>((db, sql) => {
      const due = db
        .selectFrom('cronJob')
        .select(jobColumns)
        .where(sql.raw<boolean>(isWaiting))
        .where('dueAtMs', '>', afterMs)
        .where('dueAtMs', '<=', untilMs);
      return (except.length > 0 ? due.where('agentId', 'not in', [...except]) : due).orderBy('dueAtMs').orderBy('id').limit(count);
    });
  const [next] = await some(atMs, Number.MAX_SAFE_INTEGER, 1);
  return { onTime: await some(lateAtMs, atMs, limit), late: await some(-1, lateAtMs, lateLimit), nextAtMs: next?.dueAtMs ?? null };
});

export interface OverdueSearch {
  readonly agentId: string;
  /** Null means all. */
  readonly principalId: string | null;
  readonly atMs: number;
  readonly limit: number;
}

/** Returns the due jobs of one agent and one caller, ordered by time. */
export const overdueJobs = operation('cron.overdue', async (tx, { agentId, principalId, atMs, limit }: OverdueSearch): Promise<JobRow[]> =>
  tx.build((db, sql) => {
    const due = db
      .selectFrom('cronJob')
      .select(jobColumns)
      .where(sql.raw<boolean>(isWaiting))
      .where('agentId', '=', agentId)
      .where('nextRunAtMs', '<=', atMs);
    return (principalId === null ? due : due.where('principalId', '=', principalId)).orderBy('nextRunAtMs').orderBy('id').limit(limit);
  }),
);

export const cronJobOperations = [addJob, findJob, reconcileBuiltIns, changeJob, removeJob, removeAgentJobs, dueJobs, overdueJobs];
