import { CronCounter, CronGateVerdict, type CronPolicies, CronPolicies as CronPoliciesSchema, type CronRun, type Params } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../kernel/audit.ts';
import { type CallContext, isAdmin, ownerOf } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { newId } from '../../../kernel/ids.ts';
import { viewOfWaitJson } from '../../../runtime/waiting-view.ts';
import { parseJson } from '../../../kernel/json.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import { dueTime } from './occurrences/claim.ts';
import type { CronConfig } from './config.ts';
import { type Job, parseJob, viewOf } from './jobs/job.ts';
import { checkJob, checkSchedule, type InputDeps, policiesFor, wrong } from './jobs/job-input.ts';
import { checkInterval } from './schedule/least-interval.ts';
import { listRuns, type RunRow } from './occurrences/occurrence-store.ts';
import { agentFor, reachOf } from './jobs/reach.ts';
import { readStatus } from './jobs/reset-store.ts';
import type { createReset } from './jobs/reset.ts';
import { createPreview } from './schedule/preview.ts';
import { nextRun } from './schedule/schedule.ts';
import type { States } from './jobs/states.ts';
import { findJobs, type JobSearch, listJobs } from './jobs/search-store.ts';
import { addJob, changeJob, type JobRow, overdueJobs, removeJob } from './store.ts';
import { rootRunId } from './occurrences/work.ts';

export type CronMethods = HandlersOf<`cron.${'add' | 'list' | 'update' | 'remove' | 'status' | 'runs' | 'run' | 'preview' | 'reset'}`>;

export interface CronMethodsDeps {
  /** Resolves when recovery after an earlier process has finished. */
  readonly ready: Promise<void>;
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly bootId: string;
  readonly config: CronConfig;
  /** Maximum number of jobs that an agent may create for itself. */
  readonly selfMax: number;
  readonly input: InputDeps;
  readonly agents: Pick<AgentsApi, 'find' | 'defaultId' | 'usable'>;
  readonly states: States;
  readonly reset: ReturnType<typeof createReset>['reset'];
  /** Returns the minimum interval of a job. */
  readonly leastOf: (row: Pick<JobRow, 'source' | 'tokenId'>) => number;
  /** Starts a manual occurrence; returns the execution id. */
  readonly beginManually: (job: Job) => Promise<string>;
  /** Starts the due occurrence of a job; returns the execution id. */
  readonly beginDue: (row: JobRow) => Promise<string | undefined>;
  readonly poke: () => void;
  /** Denies the pending approvals of a root run. */
  readonly endWaits: (rootRunId: string) => Promise<unknown>;
}

const maxDueAtOnce = 100;
const maxTries = 3;
/** Maximum number of characters of script output shown in a list. */
const shownLogs = 1000;
const nullable = ['deliveryTarget', 'wakeGate', 'cacheRetention', 'toolPolicy', 'maxConsecutiveDependencyErrors'] as const;

/** Handlers of `cron.*` (json-rpc.md §4). */
export function createCronMethods(deps: CronMethodsDeps): CronMethods {
  const { db, bus, clock, config, states } = deps;

  function audited(call: CallContext, actionType: string, classification: 'mutate' | 'destructive', target: string) {
    return auditRow(call, clock.now(), { actionType, classification, target });
  }

  /** Returns the one matching job within reach. */
  async function meant(search: Pick<JobSearch, 'id' | 'name' | 'nameMayBeId' | 'agentId'>, call: CallContext): Promise<Job> {
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

  async function admit(agentId: string): Promise<void> {
    await deps.ready;
    states.admit(agentId);
  }

  function authoredOnly({ row }: Job): void {
    if (row.source === 'built_in') throw new AppError('precondition_failed', `Job ${row.name} is built in; change it in the configuration`);
  }

  return {
    ...createPreview(deps),
    'cron.add': async ({ name, agentId: wanted, schedule: request, payload, ...rest }, call) => {
      const agentId = agentFor(deps.agents, wanted, call);
      await admit(agentId);
      const nowMs = clock.now();
      const schedule = checkSchedule(request, nowMs, deps.input);
      checkInterval(schedule, isAdmin(call), { config, nowMs });
      const policies = present(rest);
      checkJob({ agentId, payload, policies }, call, deps.input);
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
        dueAtMs: dueTime({ id, schedule }, nextRunAtMs, config.staggerWindowMs),
        highWaterMs: 0,
        errors: 0,
        activeExecutionId: null,
        claimedForMs: null,
        claimedAtMs: null,
        endedAtMs: null,
        revision: 1,
        createdAtMs: nowMs,
      };
      const audit = audited(call, 'cron.add', 'mutate', id);
      const bySelf = call.agentCaller !== undefined && { selfMax: deps.selfMax };
      await db.write(addJob, { job, seed: newId('cs'), ageNowMs: clock.ageNow(), maxJobs: config.maxJobs, ...bySelf, audit });
      announceAudit(bus, audit);
      deps.poke();
      return { jobId: id, name, schedule };
    },

    'cron.list': async ({ agentId, offset, limit }, call) => {
      if (agentId !== undefined) agentFor(deps.agents, agentId, call);
      const { rows, total } = await db.read(listJobs, { ...reachOf(call), agentId, offset, limit });
      return { jobs: rows.flatMap((row) => parseJob(row) ?? []).map((job) => viewOf(job, deps.leastOf(job.row))), total };
    },

    'cron.update': async ({ jobId, jobName, ...changes }, call) => {
      for (let tries = 1; ; tries += 1) {
        const job = await meant({ id: jobId, name: jobName }, call);
        authoredOnly(job);
        await admit(job.row.agentId);
        const change = changed(job, changes, call);
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
      const job = await meant({ id: jobId, name: jobName }, call);
      authoredOnly(job);
      await admit(job.row.agentId);
      const audit = audited(call, 'cron.remove', 'destructive', job.row.id);
      const open = (await db.read(listRuns, { jobId: job.row.id, limit: 100 })).filter(({ terminalAtMs }) => terminalAtMs === null);
      await db.write(removeJob, { id: job.row.id, agentId: job.row.agentId, name: job.row.name, audit });
      announceAudit(bus, audit);
      // Waiting runs have no more approvals to wait for.
      for (const { executionId } of open) await deps.endWaits(rootRunId(executionId));
      deps.poke();
      return { jobName: job.row.name, removed: true as const };
    },

    'cron.status': async ({ agentId: wanted }, call) => {
      const agentId = agentFor(deps.agents, wanted, call);
      const { principalId } = reachOf(call);
      const found = await db.read(readStatus, { agentId, principalId, bootId: deps.bootId });
      const state = states.of(agentId);
      const lastError = states.lastErrorOf(agentId);
      return {
        state,
        configuredEnabled: config.enabled,
        running: state === 'active',
        strictAuthoritiesValid: state !== 'failed',
        ownershipReconciled: found.orphans === 0,
        jobCount: found.jobs,
        activeClaimCount: found.running,
        resolvedAgentId: agentId,
        store: found.store,
        ledger: found.ledger,
        intent: intentView(found.intent),
        ...(lastError !== undefined && { lastError }),
      };
    },

    'cron.runs': async ({ jobId, jobName, limit, agentId }, call) => {
      if (agentId !== undefined) agentFor(deps.agents, agentId, call);
      const { row } = await meant({ id: jobId, name: jobName, nameMayBeId: true, agentId }, call);
      return { runs: (await db.read(listRuns, { jobId: row.id, limit })).map((run) => runView(run, call)) };
    },

    'cron.run': async ({ jobId, jobName, mode, agentId: wanted }, call) => {
      if (mode === 'due') {
        const agentId = agentFor(deps.agents, wanted, call);
        await admit(agentId);
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
      const job = await meant({ id: jobId, name: jobName, nameMayBeId: true, agentId: wanted }, call);
      await admit(job.row.agentId);
      deps.agents.usable(job.row.agentId, call);
      const executionId = await deps.beginManually(job);
      return { triggered: true, mode, jobName: job.row.name, resolvedAgentId: job.row.agentId, executionId };
    },

    'cron.reset': async (params, call) => {
      if (call.agentCaller !== undefined) throw new AppError('denied', 'This method is for administrators, not for agents');
      await deps.ready;
      return deps.reset(params, agentFor(deps.agents, params.agentId, call), call);
    },
  };

  /** Returns the row of a job after an update. */
  function changed({ row, ...job }: Job, changes: Omit<Params<'cron.update'>, 'jobId' | 'jobName'>, call: CallContext) {
    if (row.state === 'one_shot_claimed' || row.state === 'one_shot_terminal')
      throw new AppError('precondition_failed', `Job ${row.name} has already run once; add another job`);
    const { name, schedule: request, payload = job.payload, paused, ...policyChanges } = changes;
    const nowMs = clock.now();
    const schedule = request === undefined ? job.schedule : checkSchedule(request, nowMs, deps.input);
    if (request !== undefined) checkInterval(schedule, isAdmin(call), { config, nowMs });
    const policies = merged(policiesFor(payload.kind, job.policies), policyChanges);
    // Pausing or rescheduling a job must not fail because its model was removed since.
    if (Object.values({ payload: changes.payload, ...policyChanges }).some((given) => given !== undefined))
      checkJob({ agentId: row.agentId, payload, policies }, call, deps.input);
    const resumes = paused === false && row.state === 'paused';
    const isMoved = request !== undefined || resumes;
    // Claimed times stay in the past even if the clock steps back.
    const nextRunAtMs = isMoved ? nextRun(schedule, Math.max(nowMs, row.highWaterMs)) : row.nextRunAtMs;
    if (isMoved && nextRunAtMs === null)
      throw wrong(request === undefined ? 'paused' : 'schedule', 'the time of the job is in the past; set another schedule');
    const state = paused === true ? 'paused' : paused === false ? 'scheduled' : row.state;
    return {
      id: row.id,
      revision: row.revision,
      name: name ?? row.name,
      scheduleJson: JSON.stringify(schedule),
      payloadJson: JSON.stringify(payload),
      policiesJson: JSON.stringify(policies),
      state,
      pauseReason: state === 'scheduled' ? null : paused === true ? ('operator' as const) : row.pauseReason,
      nextRunAtMs,
      dueAtMs: isMoved ? dueTime({ id: row.id, schedule }, nextRunAtMs, config.staggerWindowMs) : row.dueAtMs,
      errors: resumes ? 0 : row.errors,
    };
  }
}

/** Drops the keys whose value is undefined. */
function present(given: Partial<Record<keyof CronPolicies, unknown>>): CronPolicies {
  return CronPoliciesSchema.parse(Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)));
}

function merged(former: CronPolicies, changes: Partial<Record<keyof CronPolicies, unknown>>): CronPolicies {
  const cleared = new Set<string>(nullable.filter((field) => changes[field] === null));
  const kept = Object.entries({ ...former, ...dropUndefined(changes) }).filter(([field]) => !cleared.has(field));
  return present(Object.fromEntries(kept));
}

const dropUndefined = (given: object) => Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));

const Counters = z.array(CronCounter);

function runView(row: RunRow, call: CallContext): CronRun {
  const isOwner = isAdmin(call);
  const { executionId, jobId, agentId, scheduledForMs, trigger, workKind, startedAtMs, terminalAtMs, deliveryStatus } = row;
  const waiting = row.waitingJson === null ? undefined : viewOfWaitJson(row.waitingJson, isOwner);
  return {
    executionId,
    jobId,
    agentId,
    scheduledForMs,
    trigger,
    workKind,
    rootRunId: rootRunId(executionId),
    startedAtMs,
    ...(terminalAtMs !== null && { terminalAtMs, durationMs: Math.max(0, terminalAtMs - startedAtMs) }),
    // Waits for an approver's decision.
    status: waiting?.kind === 'approval' ? 'dispatched' : row.status,
    deliveryStatus,
    ...(row.effectsRefused > 0 && { effectsRefused: row.effectsRefused }),
    ...(row.errorKind !== null && { errorKind: row.errorKind }),
    ...(row.reason !== null && { reason: row.reason }),
    ...(row.gateJson !== null && { wakeGate: verdictView(row.gateJson) }),
    ...(row.countersJson !== null && { counters: Counters.parse(parseJson(row.countersJson)) }),
    ...(isOwner && row.cause !== null && { cause: row.cause }),
    ...(waiting !== undefined && { waiting }),
  };
}

const StoredVerdict = CronGateVerdict.extend({ logs: z.string().default('') }).strip();

/** Returns the verdict with the end of the output and the beginning of a long reason. */
function verdictView(gateJson: string): CronGateVerdict {
  const { outcome, reason, logs } = StoredVerdict.parse(parseJson(gateJson));
  return {
    outcome,
    ...(reason !== undefined && { reason }),
    ...(logs !== '' && { logs: logs.slice(-shownLogs).toWellFormed() }),
  };
}

type Intent = Awaited<ReturnType<(typeof readStatus)['run']>>['intent'];

function intentView(intent: Intent) {
  if (intent === null) return { status: 'none' as const };
  if ('invalid' in intent) return { status: 'invalid' as const, digest: intent.digest };
  const { operationId, target, phase } = intent.row;
  return { status: 'pending' as const, operationId, target, phase, digest: intent.digest };
}
