import type { Live } from '../../../kernel/config/live.ts';
import type { AutonomyProfile } from '@gatehouse/contract';
import type { AgentCaller, CallContext, CallingTurn, PartOfRoot } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import { toCall } from '../../../kernel/db/operation.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { newId } from '../../../kernel/ids.ts';
import type { Log } from '../../../kernel/log.ts';
import { tracedPart, type TraceWork } from '../../../kernel/work-trace.ts';
import type { Refused, TurnBudget } from '../../../runtime/turn-budget.ts';
import type { GatedCall, GateAnswer } from '../../../runtime/tool-gate.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import type { InboxMessage } from '../../unattended/inbox/api.ts';
import type { AutonomyApi, RootStop, Standing, TurnAutonomy } from './api.ts';
import type { AutonomyConfig } from './config.ts';
import { Guards } from './guards/guards.ts';
import { keepAlive } from './roots/keep-alive.ts';
import { Leases } from './roots/leases.ts';
import { type Amount, LiveRoots } from './roots/live-roots.ts';
import { readRoot, recoverRoots } from './roots/life-store.ts';
import { createRunList, type RunListDeps } from './roots/run-list.ts';
import { type AutonomyMethods, createStopMethods, type RunningTurn, type StopMethodDeps } from './methods.ts';
import { bookTurnOnRoot } from './store.ts';
import { capsOfProfile, evictedProfile } from './guards/profiles.ts';
import { type CallNeed, RootBudget } from './roots/root-budget.ts';
import { maxStopped, StoppedWork } from './stops/stopped-work.ts';
import { createTokenStop, type StoppedOwner, type TokenStopDeps } from './stops/stop-token.ts';
import { createCapabilityCheck, createEscalation, type EscalationDeps } from './guards/tool-checks.ts';

export interface AutonomyDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly traceWork: TraceWork;
  readonly config: Live<AutonomyConfig>;
  readonly agents: AgentsApi;
  /** Returns the highest possible cost of a model call. */
  readonly maxCostOf: (need: CallNeed) => Amount;
  /** Returns the running turns that do not belong to sub-agents, newest first. */
  readonly turns: RunListDeps['turns'];
  /** Returns the turn of a root while it runs. */
  readonly turnOf: (rootRunId: string) => RunningTurn | undefined;
  readonly waitingOf: RunListDeps['waitingOf'];
  readonly operations: RunListDeps['operations'] & StopMethodDeps['operations'];
  readonly rootsOfToken: TokenStopDeps['rootsOfToken'];
  /** Delivers a message to the inbox. */
  readonly deliver: EscalationDeps['deliver'];
  /** Announces a delivered message. */
  readonly announceMessage: (message: InboxMessage) => void;
}

export interface Autonomy extends AsyncDisposable {
  readonly api: AutonomyApi;
  readonly turns: TurnAutonomy;
  readonly methods: AutonomyMethods;
  /** Recovers what dead boots left, while this one runs. */
  readonly recover: () => Promise<void>;
  /** Kills what the principal of a revoked token has started, and these roots that act for it elsewhere. */
  readonly stopToken: (owner: StoppedOwner, rootRunIds: readonly string[]) => Promise<void>;
  /** Checks before the approval gate whether the turn may start such work. */
  readonly check: (call: GatedCall) => GateAnswer | undefined;
  /** Answers instead of a person, for agents that work unattended. */
  readonly insteadOfAsking: (call: GatedCall, reason: string) => Promise<GateAnswer> | undefined;
  /** Returns what the caller may still use, for `capabilities.introspect`. */
  readonly shown: (agent: Agent, call: CallContext) => ReturnType<Guards['shown']>;
}

/** How long ended work is kept, and stopped work is known by id. */
const keptMs = 7 * 24 * 3_600_000;
const none: Standing['caps'] = new Set();

/** Decides what agents may start beyond their own turns, tracks who holds which lease, and stops work. */
export async function createAutonomy(deps: AutonomyDeps): Promise<Autonomy> {
  const { db, clock, log, config } = deps;
  const roots = new LiveRoots(() => config.current.guards.budget, clock);
  async function recover() {
    const recovered = await db.write(recoverRoots, { atMs: clock.now(), sinceMs: clock.ageNow() - keptMs, limit: maxStopped });
    if (recovered.orphaned > 0) log.warn({ roots: recovered.orphaned }, 'Marked root runs without open work as orphaned');
    for (const { id, ...seed } of recovered.active) roots.track(id, seed);
    return recovered;
  }

  const stopped = new StoppedWork(await recover());
  const leases = new Leases({ db, clock, leaseMinutes: () => config.current.guards.leaseMinutes, stopped });
  const stops: ((rootRunId: string, how: RootStop) => Promise<number> | number)[] = [];
  const revocations: ((leaseIds: readonly string[]) => void)[] = [];
  const isStopped = (turn: PartOfRoot) => stopped.includes(turn);
  const guards = new Guards({ ...deps, roots, standing });

  function profileOf(agent: Agent, rootRunId: string | undefined): AutonomyProfile {
    const profile = agent.config.autonomy.profile ?? config.current.profile;
    return rootRunId !== undefined && stopped.isEvicted(rootRunId) ? evictedProfile(profile) : profile;
  }

  function standing(agent: Agent, caller: AgentCaller | undefined): Standing {
    const turn = caller?.turn;
    const profile = profileOf(agent, turn?.rootRunId);
    if (turn !== undefined && isStopped(turn)) return { profile, caps: none };
    const caps = capsOfProfile[profile];
    if (turn?.run === undefined) return { profile, caps };
    const lease = leases.valid(turn.run.leaseId);
    return { profile, caps: lease === undefined ? none : new Set(lease.caps.filter((name) => caps.has(name))) };
  }

  async function begin({ rootRunId, run }: CallingTurn): Promise<void> {
    if (run !== undefined) await leases.begin(run);
    if (roots.has(rootRunId)) return;
    const row = await db.read(readRoot, { id: rootRunId });
    if (row !== undefined) roots.track(rootRunId, row);
    else if (run !== undefined) roots.track(rootRunId, { activeMs: 0, tokens: 0, nano: 0 });
  }

  const api: AutonomyApi = {
    standing,
    admit(capability, agent, call) {
      const turn = call.agentCaller?.turn;
      if (call.agentCaller === undefined) return;
      guards.admit(capability, agent, call);
      if (turn !== undefined) roots.track(turn.rootRunId, { activeMs: 0, tokens: 0, nano: 0 });
    },
    rootOf: ({ agentCaller }) => agentCaller?.turn?.rootRunId ?? newId('root-rpc').replace('_', '-'),
    leaseUntilMs: () => leases.untilMs(),
    issuing: (lease) => leases.issuing(lease),
    leaseOf: (bearerDigest) => leases.ofBearer(bearerDigest),
    budget: {
      spend: (rootRunId, tokens, costNano) => roots.spend(rootRunId, { tokens, nano: costNano ?? 0 }, costNano !== null),
      covers: (rootRunId) => !stopped.hasRoot(rootRunId) && roots.refusal(rootRunId, { tokens: 1, nano: 1 }) === undefined,
    },
    onStop: (stop) => void stops.push(stop),
    onRevoked: (listener) => void revocations.push(listener),
    isStopped,
  };

  const revokedRun = (): Refused => ({ cap: 'lease', limit: 0, used: 0, isRevoked: true, message: 'The run was stopped' });
  function capped(budget: TurnBudget, turn: PartOfRoot, isPart: boolean): TurnBudget {
    return new RootBudget(budget, {
      roots,
      isPart,
      rootRunId: turn.rootRunId,
      maxCostOf: deps.maxCostOf,
      onBreach: () =>
        deps.traceWork({
          kind: 'autonomy',
          ...tracedPart(turn),
          outcome: 'failed',
          endReason: 'budget_breach',
          ...(turn.run !== undefined && { refs: { runId: turn.run.runId, leaseId: turn.run.leaseId } }),
          facts: { event: 'budget_breach' },
        }),
      stopped: () => (isStopped(turn) ? revokedRun() : undefined),
    });
  }

  const turns: TurnAutonomy = {
    begin(turn, isResumed = false) {
      roots.enterTurn(turn.rootRunId);
      // A new turn that is its own root has spent nothing before.
      const isNewRoot = !isResumed && turn.run === undefined && turn.rootRunId === `root-turn-${turn.turnId}`;
      return isNewRoot ? undefined : begin(turn);
    },
    end({ rootRunId, run }) {
      roots.leaveTurn(rootRunId);
      if (run !== undefined) leases.end(run);
    },
    capped: (budget, turn) => capped(budget, turn, false),
    cappedPart: (budget, turn) => capped(budget, turn, true),
    booking: ({ rootRunId, run }, sums) => (run === undefined && roots.has(rootRunId) ? [toCall(bookTurnOnRoot, { id: rootRunId, ...sums })] : []),
  };

  const hasTurn = (rootRunId: string) => deps.turnOf(rootRunId) !== undefined;
  const keeper = keepAlive({ db, clock, log, everyMs: config.current.keepAliveMs, keptMs, roots, leases, hasTurn });
  const methods: AutonomyMethods = {
    ...createStopMethods({ ...deps, stopped, stops, revocations, profileOf }),
    'run.list': createRunList({ ...deps, stopped, profileOf }),
  };
  return {
    api,
    turns,
    methods,
    async recover() {
      const { revoked, revokedLeases, evicted } = await recover();
      for (const id of revoked) stopped.addRoot(id);
      for (const id of revokedLeases) stopped.addLease(id);
      for (const id of evicted) stopped.evict(id);
    },
    stopToken: createTokenStop({ ...deps, methods }),
    check: createCapabilityCheck({ ...deps, standing, guards, isStopped }),
    insteadOfAsking: createEscalation({ ...deps, profileOf }),
    shown: (agent, call) => guards.shown(agent, call),
    [Symbol.asyncDispose]: () => keeper[Symbol.asyncDispose](),
  };
}
