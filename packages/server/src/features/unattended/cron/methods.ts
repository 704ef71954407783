import type { Live } from '../../../kernel/config/live.ts';
import { AppError } from '../../../kernel/app-error.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { CronConfig } from './config.ts';
import type { Job } from './jobs/job.ts';
import type { InputDeps } from './jobs/job-input.ts';
import { createJobMethods } from './jobs/job-methods.ts';
import { agentFor, reachOf } from './jobs/reach.ts';
import type { createReset } from './jobs/reset.ts';
import { readStatus } from './jobs/reset-store.ts';
import type { States } from './jobs/states.ts';
import { createBackfill } from './occurrences/backfill.ts';
import { createRunMethods } from './occurrences/run-methods.ts';
import { createPreview } from './schedule/preview.ts';
import type { JobRow } from './store.ts';

export type CronMethods = HandlersOf<`cron.${'add' | 'list' | 'update' | 'remove' | 'status' | 'runs' | 'run' | 'backfill' | 'preview' | 'reset'}`>;

export interface CronMethodsDeps {
  /** Resolves when recovery after an earlier process has finished. */
  readonly ready: Promise<void>;
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly bootId: string;
  readonly config: Live<CronConfig>;
  /** Maximum number of jobs that an agent may create for itself. */
  readonly selfMax: () => number;
  readonly input: InputDeps;
  readonly agents: Pick<AgentsApi, 'find' | 'defaultId' | 'usable'>;
  readonly states: States;
  readonly reset: ReturnType<typeof createReset>['reset'];
  /** Returns the minimum interval of a job. */
  readonly leastOf: (row: Pick<JobRow, 'source' | 'tokenId' | 'principalId'>) => number;
  /** Starts a manual occurrence; returns the execution id. */
  readonly beginManually: (job: Job) => Promise<string>;
  /** Starts the due occurrence of a job; returns the execution id. */
  readonly beginDue: (row: JobRow) => Promise<string | undefined>;
  /** Call when times of jobs were queued. */
  readonly queued: () => void;
  readonly poke: () => void;
  /** Denies the pending approvals of a root run. */
  readonly endWaits: (rootRunId: string) => Promise<unknown>;
}

/** Handlers of `cron.*` (json-rpc.md §4). */
export function createCronMethods(deps: CronMethodsDeps): CronMethods {
  const { db, config, states } = deps;
  return {
    ...createPreview(deps),
    ...createJobMethods(deps),
    ...createRunMethods(deps),
    ...createBackfill(deps),

    'cron.status': async ({ agentId: wanted }, call) => {
      const agentId = agentFor(deps.agents, wanted, call);
      const { principalId } = reachOf(call);
      const found = await db.read(readStatus, { agentId, principalId, bootId: deps.bootId });
      const state = states.of(agentId);
      const lastError = states.lastErrorOf(agentId);
      return {
        state,
        configuredEnabled: config.current.enabled,
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

    'cron.reset': async (params, call) => {
      if (call.agentCaller !== undefined) throw new AppError('denied', 'This method is for administrators, not for agents');
      await deps.ready;
      return deps.reset(params, agentFor(deps.agents, params.agentId, call), call);
    },
  };
}

type Intent = Awaited<ReturnType<(typeof readStatus)['run']>>['intent'];

function intentView(intent: Intent) {
  if (intent === null) return { status: 'none' as const };
  if ('invalid' in intent) return { status: 'invalid' as const, digest: intent.digest };
  const { operationId, target, phase } = intent.row;
  return { status: 'pending' as const, operationId, target, phase, digest: intent.digest };
}
