import { isDeepStrictEqual } from 'node:util';
import { allows } from '@gatehouse/contract';
import type { Clock } from '../../../kernel/clock.ts';
import type { Live } from '../../../kernel/config/live.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { TraceWork } from '../../../kernel/work-trace.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { DurableWork } from '../durable/api.ts';
import type { CronConfig } from './config.ts';
import { AgentJobs } from './jobs/agent-jobs.ts';
import type { InputDeps } from './jobs/job-input.ts';
import { createReset } from './jobs/reset.ts';
import { createStates } from './jobs/states.ts';
import { createCronMethods, type CronMethods } from './methods.ts';
import { Backfills } from './occurrences/backfills.ts';
import { createRunner, type RunnerDeps } from './occurrences/runner.ts';
import { Scheduler } from './occurrences/scheduler.ts';
import { createStarter, type StarterDeps } from './occurrences/starter.ts';
import { cronWork } from './occurrences/work-kind.ts';
import { type RecoverDeps, recoverLeft, recoverSchedules } from './recover.ts';
import { leastIntervalMs } from './schedule/least-interval.ts';
import { realign } from './schedule/realign.ts';
import type { JobRow } from './store.ts';
import { type CronToolDeps, createCronTool } from './tool/tool.ts';

export interface CronDeps extends Omit<RunnerDeps, 'defaultMaxErrors' | 'ended' | 'execute' | 'planDue'> {
  readonly traceWork: TraceWork;
  readonly db: Db;
  readonly clock: Clock;
  /** `defaultTimezone` and `staggerWindowMs` stay as they are at the start: stored times follow them. */
  readonly config: Live<CronConfig>;
  readonly agents: AgentsApi;
  readonly autonomy: CronToolDeps['autonomy'];
  /** Maximum number of jobs that an agent may create for itself. */
  readonly selfMax: () => number;
  readonly durable: Pick<DurableWork, 'handle' | 'begin' | 'waitFor' | 'untilResumed'>;
  readonly execute: Omit<RunnerDeps['execute'], 'db' | 'clock' | 'traceWork' | 'agents' | 'durable' | 'defaultTimezone'>;
  readonly input: Omit<InputDeps, 'defaultTimezone'>;
  /** Denies the pending approvals of a root run. */
  readonly endWaits: (rootRunId: string) => Promise<unknown>;
  readonly operations: StarterDeps['operations'] & Pick<RecoverDeps, 'unfinished'>;
}

export interface Cron extends AsyncDisposable {
  readonly methods: CronMethods;
  readonly tools: readonly Tool[];
  /** Waits for recovery after an earlier process, then starts the scheduler. Call before durable work starts. */
  start(): Promise<void>;
  /** Finishes what daemons left that died while this one runs. */
  recover(): Promise<void>;
  /** Stops starting scheduled jobs. */
  pause(): void;
  /** Call when an agent was created, changed or deleted. */
  agentChanged(agentId: string): void;
}

/** Limits of cron work as a whole; agents have their own limits too. */
const running = { concurrency: 64, maxAttempts: 5 };

/** Scheduled jobs: each occurrence has one row, is claimed once, runs as durable work and ends once (docs/decisions/0023). */
export function createCron(deps: CronDeps): Cron {
  const { db, bus, clock, log, config, agents, bootId } = deps;
  const { defaultTimezone, staggerWindowMs } = config.current;
  const states = createStates({ isEnabled: () => config.current.enabled });
  const poke = () => scheduler.poke();
  const agentJobs = new AgentJobs({ db, clock, log, config, agents, states, poke });
  /** Returns the minimum interval of a job, by the current scopes of the token that created it. */
  const leastOf = ({ source, tokenId, principalId }: Pick<JobRow, 'source' | 'tokenId' | 'principalId'>): number => {
    const scopes = deps.execute.identityOf(tokenId, principalId)?.scopes;
    return leastIntervalMs(config.current, source === 'built_in' || (scopes !== undefined && allows(scopes, 'admin')));
  };
  const { planDue, beginDue, beginManually, beginBackfill } = createStarter({
    ...deps,
    states,
    staggerWindowMs,
    leastOf,
    begin: (plan, claim) => runner.begin(plan, claim),
  });
  const runner = createRunner({
    ...deps,
    defaultMaxErrors: () => config.current.maxConsecutiveDependencyErrors,
    execute: { ...deps.execute, db, clock, traceWork: deps.traceWork, agents, durable: deps.durable, defaultTimezone },
    planDue,
    ended(executionId) {
      scheduler.poke(executionId);
      backfills.poke();
    },
  });
  const setBack = () => realign({ db, clock, log, staggerWindowMs });
  const scheduler = new Scheduler({ db, clock, log, config, held: states.held, begin: beginDue, setBack });
  const suspended = () => agents.list().flatMap(({ id, suspended: isSuspended }) => (isSuspended ? [id] : []));
  const backfills = new Backfills({ db, clock, log, held: () => [...states.held(), ...suspended()], begin: beginBackfill });
  const { reset, rollForward } = createReset({ db, bus, clock, bootId, states, reconcile: (agentIds) => agentJobs.restore(agentIds), poke });
  deps.durable.handle(cronWork, runner.handler, { ...running, handlesSuspension: true, gaveUp: runner.gaveUp });

  /** Awaited by every call, because transports may already accept requests. */
  const left = { db, log, states, unfinished: deps.operations.unfinished, rollForward, reconcile: runner.reconcile };
  const ready = recoverSchedules({
    ...left,
    clock,
    staggerWindowMs,
    restoreBuiltIns: () => agentJobs.restore(agents.list().map(({ id }) => id)),
  }).catch((error: unknown) => log.error({ err: error }, 'Failed to read the schedule; no job starts'));

  let isStarted = false;
  const pause = () => {
    isStarted = false;
    scheduler.pause();
    backfills.pause();
  };
  const following = config.onChange(async ({ enabled, builtIn }, before) => {
    if (!isDeepStrictEqual(builtIn, before.builtIn)) {
      await agentJobs.restore(agents.list().map(({ id }) => id));
      poke();
    }
    if (enabled === before.enabled || !isStarted) return;
    for (const one of [scheduler, backfills]) {
      if (enabled) one.start();
      else one.pause();
    }
  });

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
    queued: () => backfills.queued(),
    poke,
    endWaits: deps.endWaits,
  });
  const { tenantId } = deps.input;

  return {
    methods,
    tools: [createCronTool({ methods, clock, agents, autonomy: deps.autonomy, tenantId, defaultTimezone, fence: deps.fence })],
    async start() {
      await ready;
      states.activate();
      isStarted = true;
      if (!config.current.enabled) return;
      scheduler.start();
      backfills.start();
    },
    recover: () => recoverLeft(left),
    pause,
    agentChanged(agentId) {
      agentJobs.agentChanged(agentId);
      backfills.poke();
    },
    async [Symbol.asyncDispose]() {
      pause();
      following[Symbol.dispose]();
      await ready;
      await scheduler[Symbol.asyncDispose]();
      await backfills[Symbol.asyncDispose]();
      await agentJobs[Symbol.asyncDispose]();
    },
  };
}
