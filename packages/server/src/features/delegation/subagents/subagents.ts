import { AppError } from '../../../kernel/app-error.ts';
import type { IdentityOf } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Operation } from '../../../kernel/db/operation.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { Log } from '../../../kernel/log.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { AutonomyApi } from '../autonomy/api.ts';
import type { ModelWork } from '../../access/budgets/api.ts';
import type { DeliveryApi, EndpointsApi } from '../../channels/delivery/api.ts';
import type { DurableWork } from '../../unattended/durable/api.ts';
import type { MediaLibrary } from '../../environment/media/api.ts';
import type { SessionsApi } from '../../conversations/sessions/api.ts';
import type { TurnsApi } from '../../conversations/turns/api.ts';
import { announceLimits, type AnnounceDeps, createAnnounce } from './completion/announce.ts';
import type { SubagentsApi, WaitingRun } from './api.ts';
import type { AgentToAgentConfig } from './config.ts';
import type { Live } from '../../../kernel/config/live.ts';
import { SpawnGate } from './requests/gate.ts';
import { createSubagentMethods, type MethodDeps, type SubagentMethods } from './methods.ts';
import { planReplacement } from './requests/plan-run.ts';
import type { EndedRun } from './run/row.ts';
import { Kills, type RunKillInput } from './run/kills.ts';
import { createResults } from './completion/results.ts';
import { createRunEvents } from './run/run-events.ts';
import { Runner, runLimits, type RunnerDeps } from './run/runner.ts';
import { createRunsApi } from './requests/runs-api.ts';
import { createSpawn, type SpawnDeps } from './requests/spawn/spawn.ts';
import { createSteer, type SteerDeps } from './requests/steer.ts';
import { findRun } from './store.ts';
import { startSweep } from './run/sweep.ts';
import { createSubagentTools } from './tools/tools.ts';
import { createWait } from './status/wait.ts';
import { Waiters } from './status/waiters.ts';
import { announceWork, runWork } from './requests/work-kind.ts';

export interface SubagentsDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  /** Id of this run of the daemon. */
  readonly bootId: string;
  readonly config: Live<AgentToAgentConfig>;
  readonly agents: SpawnDeps['agents'];
  readonly autonomy: AutonomyApi;
  readonly durable: Pick<DurableWork, 'handle' | 'begin' | 'wake' | 'waitFor'>;
  readonly inbox: AnnounceDeps['inbox'];
  readonly sessions: Pick<SessionsApi, 'said' | 'existing'>;
  readonly endpoints: Pick<EndpointsApi, 'named' | 'address'>;
  readonly delivery: Pick<DeliveryApi, 'sendCall' | 'wake'>;
  readonly turns: Pick<TurnsApi, 'runDurably' | 'announce'>;
  readonly work: Pick<ModelWork, 'generate'>;
  readonly media: Pick<MediaLibrary, 'save' | 'read'>;
  readonly toolsOf: (agentId: string) => readonly Tool[];
  readonly knowsModel: (name: string) => boolean;
  readonly fence: SpawnDeps['fence'];
  readonly identityOf: IdentityOf;
  readonly authority: SteerDeps['authority'];
  readonly noticeMessages: () => void;
  readonly conversationOf: SpawnDeps['conversationOf'];
  /** Operations that must commit together with those of other features. */
  readonly operations: RunnerDeps['operations'] &
    AnnounceDeps['operations'] & {
      readonly kill: Operation<RunKillInput, EndedRun[]>;
      readonly inject: SteerDeps['inject'];
      readonly waitingOf: Operation<{ readonly graphId: string }, readonly WaitingRun[]>;
      readonly waitingOfRun: MethodDeps['waitingOfRun'];
      readonly replace: SteerDeps['replace'];
    };
}

export interface Subagents extends AsyncDisposable {
  readonly api: SubagentsApi;
  readonly methods: SubagentMethods;
  readonly tools: readonly Tool[];
  /** Stops accepting sub-agents, even after a resume. */
  stopping(): void;
}

/** Runs sub-agents for agents, tokens and graphs in the background: durable runs with one end and one announcement (docs/decisions/0026). */
export function createSubagents(deps: SubagentsDeps): Subagents {
  const { db, bus, clock, config, operations } = deps;
  const events = createRunEvents({ bus, clock });
  const waiters = new Waiters();
  const gate = new SpawnGate();
  const ending = new AbortController();
  const results = createResults(deps);
  let nodeTools: readonly Tool[] = [];
  const runner = new Runner({ ...deps, nodeTools: () => nodeTools, events, waiters, wakeAnnouncements: () => deps.durable.wake(announceWork) });
  deps.durable.handle(runWork, (item, signal) => runner.handle(item, signal), {
    ...runLimits,
    gaveUp: (item, errorKind, cause) => runner.gaveUp(item, errorKind, cause),
  });
  const announce = createAnnounce({ ...deps, events, identityOf: (row) => runner.identityOf(row) });
  deps.durable.handle(announceWork, announce.handler, { ...announceLimits, gaveUp: announce.gaveUp });

  const kills = new Kills({ db, clock, log: deps.log, runner, kill: operations.kill });
  deps.autonomy.onStop((rootRunId, how) => kills.stopRoot(rootRunId, how));

  const planning = { ...deps, now: () => clock.now(), ageNow: () => clock.ageNow() };
  const spawn = createSpawn({ ...planning, gate, runner });
  const wait = createWait({ db, clock, waiters, stopping: ending.signal, lend: (runId) => runner.live(runId)?.slot?.lend() ?? (() => {}) });
  const steer = createSteer({
    db,
    clock,
    config,
    gate,
    events,
    runner,
    fence: deps.fence,
    authority: deps.authority,
    wake: () => deps.durable.wake(runWork),
    admit(call) {
      const { agentCaller } = call;
      if (agentCaller !== undefined) deps.autonomy.admit('orch:spawn', deps.agents.usable(agentCaller.agentId, call), call);
    },
    inject: operations.inject,
    replace: operations.replace,
    stopped: (ended) => kills.stopped(ended),
    planReplacement: (row, task) => planReplacement(planning, row, task),
  });

  const following = config.onChange(() => runner.limitsChanged());
  const sweep = startSweep({
    db,
    clock,
    log: deps.log,
    bootId: deps.bootId,
    config,
    events,
    isWatched: (runId) => runner.isWatched(runId),
    end: (runIds) => kills.endGhosts(runIds),
  });

  /** Answers every waiter; running work continues at the next start. */
  function stopping(): void {
    gate.close();
    ending.abort(new AppError('unavailable', 'The daemon is stopping'));
  }

  const methods = createSubagentMethods({
    db,
    bus,
    clock,
    config,
    gate,
    spawn,
    wait,
    steer,
    kill: (row, notify, audit) => kills.killOne(row, notify, audit),
    waitingOfRun: operations.waitingOfRun,
  });

  return {
    api: createRunsApi({
      ...planning,
      gate,
      waiters,
      runner,
      counts: () => runner.counts,
      said: results.said,
      waitingOf: operations.waitingOf,
      offerToNodes: (tools) => {
        nodeTools = tools;
      },
      onStopped: (stop) => kills.onStopped(stop),
      kill: async (runId) => {
        const row = await db.read(findRun, { id: runId });
        return row !== undefined && kills.killOne(row, false);
      },
    }),
    methods,
    tools: createSubagentTools({ db, clock, config, agents: deps.agents, results, methods, spawn, wait }),
    stopping,
    async [Symbol.asyncDispose]() {
      stopping();
      following[Symbol.dispose]();
      await sweep[Symbol.asyncDispose]();
    },
  };
}
