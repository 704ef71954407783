import { cronLimits } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../../kernel/audit.ts';
import type { HandlersOf } from '../../../../kernel/handlers.ts';
import { assertAuthored, findOneJob } from '../jobs/find-job.ts';
import type { Job } from '../jobs/job.ts';
import { agentFor } from '../jobs/reach.ts';
import { averageTurnCost } from '../jobs/search-store.ts';
import { admit } from '../jobs/states.ts';
import type { CronMethodsDeps } from '../methods.ts';
import { runsBetween } from '../schedule/schedule.ts';
import { listBackfill, requestBackfill } from './backfill-store.ts';

/** Times of a range that are looked at. */
const maxExamined = 10_000;

/** Implements `cron.backfill`, an extension of the specification. */
export function createBackfill(deps: CronMethodsDeps): HandlersOf<'cron.backfill'> {
  const { db, bus, clock, agents } = deps;

  async function costOf({ row, payload }: Job, count: number): Promise<number | null> {
    if (payload.kind !== 'agent_turn') return 0;
    const turnUsd = await db.read(averageTurnCost, { agentId: row.agentId });
    return turnUsd === null ? null : turnUsd * count;
  }

  return {
    'cron.backfill': async ({ jobId, jobName, agentId: wanted, fromMs, toMs, limit, dryRun }, call) => {
      if (call.agentCaller !== undefined) throw new AppError('denied', 'cron.backfill is for people, not for agents');
      if (wanted !== undefined) agentFor(agents, wanted, call);
      const job = await findOneJob(db, { id: jobId, name: jobName, nameMayBeId: true, agentId: wanted }, call);
      assertAuthored(job);
      if (job.schedule.kind === 'at') throw new AppError('precondition_failed', `Job ${job.row.name} runs once; start it with cron.run`);
      const { id, agentId, name, state, nextRunAtMs } = job.row;
      await admit(deps, agentId);
      agents.usable(agentId, call);
      // Times that are due are left to the scheduler.
      const nowMs = clock.now();
      const untilMs = Math.min(toMs ?? nowMs, nowMs, state === 'scheduled' && nextRunAtMs !== null ? nextRunAtMs - 1 : nowMs);
      const range = fromMs !== undefined && { timesMs: runsBetween(job.schedule, fromMs - 1, untilMs, maxExamined) };
      const open = await db.read(listBackfill, { jobId: id, agentId, ...range });
      const times = open.slice(0, limit);
      const result = { jobName: name, resolvedAgentId: agentId, dryRun, more: open.length > limit };
      if (dryRun || times.length === 0) return { ...result, timesMs: times, costUsd: await costOf(job, times.length) };
      const audit = auditRow(call, nowMs, { actionType: 'cron.backfill', classification: 'mutate', target: id, metadata: { times: times.length } });
      const timesMs = await db.write(requestBackfill, { jobId: id, agentId, timesMs: times, maxQueued: cronLimits.backfill, atMs: nowMs, audit });
      if (timesMs.length > 0) announceAudit(bus, audit);
      deps.queued();
      return { ...result, timesMs, costUsd: await costOf(job, timesMs.length) };
    },
  };
}
