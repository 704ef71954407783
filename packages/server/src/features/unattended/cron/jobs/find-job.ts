import { AppError } from '../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import { type Job, parseJob } from './job.ts';
import { reachOf } from './reach.ts';
import { findJobs, type JobSearch } from './search-store.ts';

/** Returns the one matching job within reach of the caller; throws when there is none, or more than one. */
export async function findOneJob(db: Db, search: Pick<JobSearch, 'id' | 'name' | 'nameMayBeId' | 'agentId'>, call: CallContext): Promise<Job> {
  const rows = await db.read(findJobs, { ...search, ...reachOf(call) });
  const param = search.id === undefined ? 'jobName' : 'jobId';
  const [row] = rows;
  if (row === undefined) throw new AppError('not_found', 'Job not found', { param });
  if (rows.length > 1)
    throw new AppError('precondition_failed', `Several jobs have this name: ${rows.map(({ id, agentId }) => `${id} (${agentId})`).join(', ')}`, {
      param,
    });
  const job = parseJob(row);
  if (job === undefined) throw new AppError('precondition_failed', `The stored job is damaged: ${row.id}`, { param });
  return job;
}

/** Throws unless the job was added by a call. */
export function assertAuthored({ row }: Job): void {
  if (row.source === 'built_in') throw new AppError('precondition_failed', `Job ${row.name} is built in; change it in the configuration`);
}
