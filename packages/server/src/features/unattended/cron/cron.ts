import { allows } from '@gatehouse/contract';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import { newId } from '../../../kernel/ids.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { DurableWork } from '../durable/api.ts';
import { builtInJobs } from './jobs/built-in.ts';
import { type ClaimPlan, type ManualPlan, planClaim, planManual } from './occurrences/claim.ts';
import type { CronConfig } from './config.ts';
import { type Job, parseJob } from './jobs/job.ts';
import type { InputDeps } from './jobs/job-input.ts';
import { leastIntervalMs } from './schedule/least-interval.ts';
import { createCronMethods, type CronMethods } from './methods.ts';
import { realign } from './schedule/realign.ts';
import { createReset } from './jobs/reset.ts';
import { openIntents } from './jobs/reset-store.ts';
import { createRunner, type RunnerDeps, type Unfinished } from './occurrences/runner.ts';
import { createScheduler } from './occurrences/scheduler.ts';
import { jobsAfter } from './jobs/search-store.ts';
import { createStates } from './jobs/states.ts';
import { type JobRow, reconcileBuiltIns, removeAgentJobs } from './store.ts';
import { type CronToolDeps, createCronTool } from './tool.ts';
import { cronWork } from './occurrences/work-kind.ts';

export interface CronDeps extends Omit<RunnerDeps, 'defaultMaxErrors' | 'ended' | 'execute' | 'planDue'> {
  readonly db: Db;
  readonly clock: Clock;
  readonly config: CronConfig;
  readonly agents: AgentsApi;
  readonly autonomy: CronToolDeps['autonomy'];
  /** Maximum number of jobs that an agent may create for itself. */
  readonly selfMax: number;
  readonly durable: Pick<DurableWork, 'handle' | 'wake' | 'waitFor' | 'untilResumed'>;
  readonly execute: Omit<RunnerDeps['execute'], 'db' | 'clock' | 'agents' | 'durable' | 'defaultTimezone'>;
  readonly input: Omit<InputDeps, 'defaultTimezone'>;
  /** Denies the pending approvals of a root run. */
  readonly endWaits: (rootRunId: string) => Promise<unknown>;
  readonly operations: {
    readonly claim: Operation<ClaimPlan, boolean>;
    readonly claimManually: Operation<ManualPlan, void>;
    readonly unfinished: Operation<{ readonly limit: number }, Unfinished[]>;
  };
}

export interface Cron extends AsyncDisposable {
  readonly methods: CronMethods;
  readonly tools: readonly Tool[];
  /** Waits for recovery after an earlier process, then starts the scheduler. Call before durable work starts. */
  start(): Promise<void>;
  /** Stops starting scheduled jobs. */
  pause(): void;
  /** Call when an agent was created, changed or deleted. */
  agentChanged(agentId: string): void;
}

/** Limits of cron work as a whole; agents have their own limits too. */
const running = { concurrency: 64, maxAttempts: 5 };
/** Page size of the strict check at start, small enough not to block other reads. */
const pageOfJobs = 100;
const maxUnfinished = 10_000;

/** Scheduled jobs: each occurrence has one row, is claimed once, runs as durable work and ends once (docs/decisions/0023). */
export function createCron(deps: CronDeps): Cron {
  const { db, bus, clock, log, config, agents, operations, bootId } = deps;
  const { defaultTimezone, staggerWindowMs, maxConsecutiveDependencyErrors: defaultMaxErrors } = config;
  const states = createStates({ enabled: config.enabled });
  /** Agents whose built-in jobs exist. */
  const known = new Set(agents.list().map(({ id }) => id));
  /** Monotonic, so that changes of the system clock do not affect it. */
  const bootedAt = clock.monotonic();
  let background: Promise<unknown> = Promise.resolve();

  const runner = createRunner({
    ...deps,
    defaultMaxErrors,
    execute: { ...deps.execute, db, clock, agents, durable: deps.durable, defaultTimezone },
    planDue,
    ended: (executionId) => scheduler.poke(executionId),
  });
  const scheduler = createScheduler({
    db,
    clock,
    log,
    config,
    held: states.held,
    begin: beginDue,
    setBack: () => realign({ db, clock, log, staggerWindowMs }),
  });
  const { reset, rollForward } = createReset({ db, bus, clock, bootId, states, reconcile: reconcileFor, poke: () => scheduler.poke() });
  deps.durable.handle(cronWork, runner.handler, { ...running, handlesSuspension: true, gaveUp: runner.gaveUp });

  async function beginDue(row: JobRow): Promise<string | undefined> {
    const job = parseJob(row);
    if (job === undefined) {
      log.error({ jobId: row.id, agentId: row.agentId }, 'A stored job is damaged; the schedule of its agent is stopped');
      states.fail(row.agentId, { code: 'snapshot_failed', errorKind: 'corrupt' });
      return undefined;
    }
    const plan = planDue(job, clock.now());
    if (!(await db.write(operations.claim, plan))) return undefined;
    runner.announceStart(plan.occurrence);
    deps.durable.wake(cronWork);
    return plan.occurrence.executionId;
  }

  function planDue(job: Job, nowMs: number): ClaimPlan {
    const bootedAtMs = clock.now() - (clock.monotonic() - bootedAt);
    return planClaim(job, { bootId, nowMs, bootedAtMs, leastMs: leastOf(job.row), staggerWindowMs });
  }

  /** Returns the minimum interval of a job, by the current scopes of the token that created it. */
  function leastOf({ source, tokenId }: Pick<JobRow, 'source' | 'tokenId'>): number {
    const scopes = deps.execute.identityOf(tokenId)?.scopes;
    return leastIntervalMs(config, source === 'built_in' || (scopes !== undefined && allows(scopes, 'admin')));
  }

  async function beginManually(job: Job): Promise<string> {
    const plan = planManual(job, { bootId, nowMs: clock.now() });
    await db.write(operations.claimManually, plan);
    runner.announceStart(plan.occurrence);
    deps.durable.wake(cronWork);
    return plan.occurrence.executionId;
  }

  async function reconcileFor(agentIds: readonly string[]): Promise<void> {
    const nowMs = clock.now();
    const wanted = agentIds.flatMap((agentId) => builtInJobs(agentId, config, nowMs));
    await db.write(reconcileBuiltIns, { wanted, agentIds, seed: newId('cs'), atMs: nowMs });
  }

  /** Queues work for one agent outside of any call. */
  function runInBackground(agentId: string, work: () => Promise<unknown>): void {
    background = background
      .then(work)
      .then(() => scheduler.poke())
      .catch((error: unknown) => log.error({ err: error, agentId }, 'Failed to reconcile the jobs of an agent'));
  }

  /** Runs one recovery step; a failure stops only the schedule of its agent. */
  async function recoverJobs(agentId: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      log.error({ err: error, agentId }, 'Failed to recover the jobs of an agent after a restart; its schedule is stopped');
      states.fail(agentId, { code: 'initialization_failed', errorKind: 'internal' });
    }
  }

  async function recover(): Promise<void> {
    for (const { agentId, isValid } of await db.read(openIntents, {})) {
      if (!isValid) {
        states.fail(agentId, { code: 'intent_invalid', errorKind: 'corrupt' });
        continue;
      }
      log.warn({ agentId }, 'Resuming interrupted schedule reset');
      await recoverJobs(agentId, () => rollForward(agentId));
    }
    for (let rows = await db.read(jobsAfter, { afterId: '', limit: pageOfJobs }); rows.length > 0;) {
      for (const row of rows) if (parseJob(row) === undefined) states.fail(row.agentId, { code: 'initialization_failed', errorKind: 'corrupt' });
      const last = rows.at(-1);
      rows = last === undefined || rows.length < pageOfJobs ? [] : await db.read(jobsAfter, { afterId: last.id, limit: pageOfJobs });
    }
    for (const one of await db.read(operations.unfinished, { limit: maxUnfinished })) await recoverJobs(one.row.agentId, () => runner.reconcile(one));
    await reconcileFor(agents.list().map(({ id }) => id));
    await realign({ db, clock, log, staggerWindowMs });
    states.initialized();
  }

  /** Awaited by every call, because transports may already accept requests. */
  const ready = recover().catch((error: unknown) => log.error({ err: error }, 'Failed to read the schedule; no job starts'));

  const methods = createCronMethods({
    ready,
    db,
    bus,
    clock,
    bootId,
    config,
    selfMax: deps.selfMax,
    input: { ...deps.input, defaultTimezone },
    agents,
    states,
    reset,
    leastOf,
    beginManually,
    beginDue,
    poke: () => scheduler.poke(),
    endWaits: deps.endWaits,
  });

  return {
    methods,
    tools: [
      createCronTool({
        methods,
        clock,
        agents,
        autonomy: deps.autonomy,
        tenantId: deps.input.tenantId,
        defaultTimezone,
        fence: deps.fence,
      }),
    ],
    async start() {
      await ready;
      states.activate();
      if (config.enabled) scheduler.start();
    },
    pause: scheduler.pause,
    agentChanged(agentId) {
      const isThere = agents.find(agentId) !== undefined;
      if (isThere === known.has(agentId)) return;
      if (isThere) known.add(agentId);
      else known.delete(agentId);
      runInBackground(agentId, async () => {
        if (isThere) return reconcileFor([agentId]);
        await db.write(removeAgentJobs, { agentId });
        states.forget(agentId);
      });
    },
    async [Symbol.asyncDispose]() {
      await ready;
      await scheduler[Symbol.asyncDispose]();
      await background;
    },
  };
}
