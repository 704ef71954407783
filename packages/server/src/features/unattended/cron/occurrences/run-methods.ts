import type { CronMethods, CronMethodsDeps } from '../methods.ts';
import { findOneJob } from '../jobs/find-job.ts';
import { agentFor, reachOf } from '../jobs/reach.ts';
import { overdueJobs } from '../store.ts';
import { listRuns } from './occurrence-store.ts';
import { runView } from './run-view.ts';
import { admit } from '../jobs/states.ts';

const maxDueAtOnce = 100;

/** Implements the methods that start and list runs. */
export function createRunMethods(deps: CronMethodsDeps): Pick<CronMethods, `cron.${'runs' | 'run'}`> {
  const { db, clock } = deps;
  return {
    'cron.runs': async ({ jobId, jobName, limit, agentId }, call) => {
      if (agentId !== undefined) agentFor(deps.agents, agentId, call);
      const { row } = await findOneJob(db, { id: jobId, name: jobName, nameMayBeId: true, agentId }, call);
      return { runs: (await db.read(listRuns, { jobId: row.id, limit })).map((run) => runView(run, call)) };
    },

    'cron.run': async ({ jobId, jobName, mode, agentId: wanted }, call) => {
      if (mode === 'due') {
        const agentId = agentFor(deps.agents, wanted, call);
        await admit(deps, agentId);
        deps.agents.usable(agentId, call);
        const rows = await db.read(overdueJobs, { agentId, principalId: reachOf(call).principalId, atMs: clock.now(), limit: maxDueAtOnce });
        const executionIds: string[] = [];
        for (const row of rows) {
          const executionId = await deps.beginDue(row);
          if (executionId !== undefined) executionIds.push(executionId);
        }
        deps.poke();
        return { triggered: executionIds.length > 0, mode, resolvedAgentId: agentId, executionIds };
      }
      if (wanted !== undefined) agentFor(deps.agents, wanted, call);
      const job = await findOneJob(db, { id: jobId, name: jobName, nameMayBeId: true, agentId: wanted }, call);
      await admit(deps, job.row.agentId);
      deps.agents.usable(job.row.agentId, call);
      const executionId = await deps.beginManually(job);
      return { triggered: true, mode, jobName: job.row.name, resolvedAgentId: job.row.agentId, executionId };
    },
  };
}
