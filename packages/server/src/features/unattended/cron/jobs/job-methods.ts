import { announceAudit, auditRow } from '../../../../kernel/audit.ts';
import { type CallContext, isAdmin, ownerOf } from '../../../../kernel/call-context.ts';
import { AppError } from '../../../../kernel/app-error.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { CronMethods, CronMethodsDeps } from '../methods.ts';
import { dueTime } from '../occurrences/claim.ts';
import { lastRuns, listRuns } from '../occurrences/occurrence-store.ts';
import { runView } from '../occurrences/run-view.ts';
import { rootRunId } from '../occurrences/work.ts';
import { checkInterval } from '../schedule/least-interval.ts';
import { nextRun } from '../schedule/schedule.ts';
import { addJob, changeJob, type JobRow, removeJob } from '../store.ts';
import { changed, present } from './change.ts';
import { assertAuthored, findOneJob } from './find-job.ts';
import { authorJsonOf, viewOf, parseJob } from './job.ts';
import { checkJob, checkSchedule } from './job-input.ts';
import { agentFor, reachOf } from './reach.ts';
import { listJobs } from './search-store.ts';
import { admit } from './states.ts';

const maxTries = 3;

/** Implements the methods that list and change jobs. */
export function createJobMethods(deps: CronMethodsDeps): Pick<CronMethods, `cron.${'add' | 'list' | 'update' | 'remove'}`> {
  const { db, bus, clock, config } = deps;

  function audited(call: CallContext, actionType: string, classification: 'mutate' | 'destructive', target: string) {
    return auditRow(call, clock.now(), { actionType, classification, target });
  }

  return {
    'cron.add': async ({ name, agentId: wanted, schedule: request, payload, ...rest }, call) => {
      const agentId = agentFor(deps.agents, wanted, call);
      await admit(deps, agentId);
      const nowMs = clock.now();
      const schedule = checkSchedule(request, nowMs, deps.input);
      checkInterval(schedule, isAdmin(call), { config: config.current, nowMs });
      const policies = present(rest);
      await checkJob({ agentId, payload, policies }, call, deps.input);
      const id = newId('cj');
      const nextRunAtMs = nextRun(schedule, nowMs);
      const job: JobRow = {
        id,
        agentId,
        name,
        source: 'authored',
        principalId: ownerOf(call),
        tokenId: call.identity.tokenId,
        scheduleJson: JSON.stringify(schedule),
        payloadJson: JSON.stringify(payload),
        policiesJson: JSON.stringify(policies),
        state: 'scheduled',
        pauseReason: null,
        nextRunAtMs,
        dueAtMs: dueTime({ id, schedule }, nextRunAtMs, config.current.staggerWindowMs),
        highWaterMs: 0,
        errors: 0,
        activeExecutionId: null,
        claimedForMs: null,
        claimedAtMs: null,
        endedAtMs: null,
        revision: 1,
        createdAtMs: nowMs,
        authorJson: authorJsonOf(call),
      };
      const audit = audited(call, 'cron.add', 'mutate', id);
      const bySelf = call.agentCaller !== undefined && { selfMax: deps.selfMax() };
      await db.write(addJob, { job, seed: newId('cs'), ageNowMs: clock.ageNow(), maxJobs: config.current.maxJobs, ...bySelf, audit });
      announceAudit(bus, audit);
      deps.poke();
      return { jobId: id, name, schedule };
    },

    'cron.list': async ({ agentId, offset, limit }, call) => {
      if (agentId !== undefined) agentFor(deps.agents, agentId, call);
      const { rows, total } = await db.read(listJobs, { ...reachOf(call), agentId, offset, limit });
      const last = new Map((await db.read(lastRuns, { jobIds: rows.map(({ id }) => id) })).map((run) => [run.jobId, runView(run, call)]));
      const jobs = rows
        .flatMap((row) => parseJob(row) ?? [])
        .map((job) => {
          const lastRun = last.get(job.row.id);
          return { ...viewOf(job, deps.leastOf(job.row)), ...(lastRun !== undefined && { lastRun }) };
        });
      return { jobs, total };
    },

    'cron.update': async ({ jobId, jobName, ...changes }, call) => {
      for (let tries = 1; ; tries += 1) {
        const job = await findOneJob(db, { id: jobId, name: jobName }, call);
        assertAuthored(job);
        await admit(deps, job.row.agentId);
        const change = await changed(job, { changes, call }, { config: config.current, input: deps.input, nowMs: clock.now() });
        const audit = audited(call, 'cron.update', 'mutate', job.row.id);
        if (await db.write(changeJob, { change, row: job.row, audit })) {
          announceAudit(bus, audit);
          deps.poke();
          return { jobName: change.name, updated: true as const };
        }
        if (tries >= maxTries) throw new AppError('conflict', 'The job was changed concurrently; try again');
      }
    },

    'cron.remove': async ({ jobId, jobName }, call) => {
      const job = await findOneJob(db, { id: jobId, name: jobName }, call);
      assertAuthored(job);
      await admit(deps, job.row.agentId);
      const audit = audited(call, 'cron.remove', 'destructive', job.row.id);
      const open = (await db.read(listRuns, { jobId: job.row.id, limit: 100 })).filter(({ terminalAtMs }) => terminalAtMs === null);
      await db.write(removeJob, { id: job.row.id, agentId: job.row.agentId, name: job.row.name, audit });
      announceAudit(bus, audit);
      // Waiting runs have no more approvals to wait for.
      for (const { executionId } of open) await deps.endWaits(rootRunId(executionId));
      deps.poke();
      return { jobName: job.row.name, removed: true as const };
    },
  };
}
