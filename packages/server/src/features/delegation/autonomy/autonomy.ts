import type { AutonomyProfile } from '@gatehouse/contract';
import type { AgentCaller, CallContext, CallingTurn } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { newId } from '../../../kernel/ids.ts';
import type { Log } from '../../../kernel/log.ts';
import type { Refused, TurnBudget } from '../../../runtime/turn-budget.ts';
import type { GatedCall, GateAnswer } from '../../../runtime/tool-gate.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import type { InboxMessage } from '../../unattended/inbox/api.ts';
import type { AutonomyApi, HeldLease, NewLease, RootStop, Standing, TurnAutonomy } from './api.ts';
import type { AutonomyConfig } from './config.ts';
import { Guards } from './guards/guards.ts';
import { keepAlive } from './roots/keep-alive.ts';
import { beginLease, findBearer, findLease, type LeaseRow } from './roots/lease-store.ts';
import { type Amount, LiveRoots } from './roots/live-roots.ts';
import { readRoot, recoverRoots } from './roots/life-store.ts';
import { type AutonomyMethodDeps, type AutonomyMethods, createAutonomyMethods, type RunningTurn } from './methods.ts';
import { capsOfProfile, evictedProfile, parseCaps } from './guards/profiles.ts';
import { type CallNeed, RootBudget } from './roots/root-budget.ts';
import { createTokenStop } from './stops/stop-token.ts';
import { createCapabilityCheck, createEscalation, type EscalationDeps } from './guards/tool-checks.ts';

export interface AutonomyDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly config: AutonomyConfig;
  readonly agents: AgentsApi;
  /** Returns the highest possible cost of a model call. */
  readonly maxCostOf: (need: CallNeed) => Amount;
  /** Returns the running turns that do not belong to sub-agents, newest first. */
  readonly turns: AutonomyMethodDeps['turns'];
  /** Returns the turn of a root while it runs. */
  readonly turnOf: (rootRunId: string) => RunningTurn | undefined;
  readonly waitingOf: AutonomyMethodDeps['waitingOf'];
  /** Delivers a message to the inbox. */
  readonly deliver: EscalationDeps['deliver'];
  /** Announces a delivered message. */
  readonly announceMessage: (message: InboxMessage) => void;
}

export interface Autonomy extends AsyncDisposable {
  readonly api: AutonomyApi;
  readonly turns: TurnAutonomy;
  readonly methods: AutonomyMethods;
  /** Kills what the principal of a revoked token has started, and these roots that act for it elsewhere. */
  readonly stopToken: (principalId: string, rootRunIds: readonly string[]) => Promise<void>;
  /** Checks before the approval gate whether the turn may start such work. */
  readonly check: (call: GatedCall) => GateAnswer | undefined;
  /** Answers instead of a person, for agents that work unattended. */
  readonly insteadOfAsking: (call: GatedCall, reason: string) => Promise<GateAnswer> | undefined;
  /** Returns what the caller may still use, for `capabilities.introspect`. */
  readonly shown: (agent: Agent, call: CallContext) => ReturnType<Guards['shown']>;
}

/** How long ended work is kept, and stopped work is known by id. */
const keptMs = 7 * 24 * 3_600_000;
const maxStopped = 10_000;
const none: Standing['caps'] = new Set();

/** Decides what agents may start beyond their own turns, tracks who holds which lease, and stops work. */
export async function createAutonomy(deps: AutonomyDeps): Promise<Autonomy> {
  const { db, clock, log, config } = deps;
  const roots = new LiveRoots(config.guards.budget, clock);
  const leases = new Map<string, HeldLease>();
  /** Leases of runs that begin as soon as they are accepted. */
  const issued = new Map<string, NewLease>();
  /** Leases of runs whose turns are running. */
  const running = new Set<string>();
  const atMs = clock.now();
  const recovered = await db.write(recoverRoots, { atMs, sinceMs: clock.ageNow() - keptMs, limit: maxStopped });
  if (recovered.orphaned > 0) log.warn({ roots: recovered.orphaned }, 'Marked root runs without open work as orphaned');
  const stopped = { roots: new Set(recovered.revoked), leases: new Set(recovered.revokedLeases), evicted: new Set(recovered.evicted) };
  for (const { id, ...seed } of recovered.active) roots.track(id, seed);
  const stops: ((rootRunId: string, how: RootStop) => Promise<number> | number)[] = [];
  const revocations: ((leaseIds: readonly string[]) => void)[] = [];
  const guards = new Guards({ ...deps, roots, standing });

  function profileOf(agent: Agent, rootRunId: string | undefined): AutonomyProfile {
    const profile = agent.config.autonomy.profile ?? config.profile;
    return rootRunId !== undefined && stopped.evicted.has(rootRunId) ? evictedProfile(profile) : profile;
  }

  function standing(agent: Agent, caller: AgentCaller | undefined): Standing {
    const turn = caller?.turn;
    const profile = profileOf(agent, turn?.rootRunId);
    if (turn !== undefined && isStopped(turn)) return { profile, caps: none };
    const caps = capsOfProfile[profile];
    if (turn?.run === undefined) return { profile, caps };
    const lease = leases.get(turn.run.leaseId);
    return {
      profile,
      caps: lease === undefined || lease.expiresAtMs <= clock.ageNow() ? none : new Set(lease.caps.filter((name) => caps.has(name))),
    };
  }

  const isStopped = ({ rootRunId, run }: CallingTurn): boolean =>
    stopped.roots.has(rootRunId) || (run !== undefined && stopped.leases.has(run.leaseId));

  const holds = (lease: Pick<HeldLease, 'id' | 'rootRunId'>) => !stopped.leases.has(lease.id) && !stopped.roots.has(lease.rootRunId);

  function heldBy(row: LeaseRow | undefined): HeldLease | undefined {
    return row !== undefined && holds(row) ? { ...row, caps: parseCaps(row.caps) } : undefined;
  }

  /** Returns the lease of a run. Most were issued a moment ago; only after a long wait is a lease renewed, which costs a commit. */
  async function leaseOfRun(id: string): Promise<HeldLease | undefined> {
    const expiresAtMs = api.leaseUntilMs();
    const isYoung = (lease: Pick<HeldLease, 'expiresAtMs'>) => lease.expiresAtMs - clock.ageNow() > (expiresAtMs - clock.ageNow()) / 2;
    const fresh = issued.get(id);
    if (fresh !== undefined && isYoung(fresh)) return holds(fresh) ? fresh : undefined;
    const row = await db.read(findLease, { id });
    return heldBy(row === undefined || isYoung(row) ? row : await db.write(beginLease, { id, expiresAtMs }));
  }

  async function begin({ rootRunId, run }: CallingTurn): Promise<void> {
    if (run !== undefined) {
      running.add(run.leaseId);
      const lease = await leaseOfRun(run.leaseId);
      if (lease !== undefined) leases.set(lease.id, lease);
    }
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
    leaseUntilMs: () => clock.ageNow() + config.guards.leaseMinutes * 60_000,
    issuing(lease) {
      issued.set(lease.id, lease);
      return () => void issued.delete(lease.id);
    },
    leaseOf: async (bearerDigest) => heldBy(await db.read(findBearer, { bearerDigest, atMs: clock.ageNow() })),
    budget: {
      spend: (rootRunId, tokens, costNano) => roots.spend(rootRunId, { tokens, nano: costNano ?? 0 }, costNano !== null),
      covers: (rootRunId) => !stopped.roots.has(rootRunId) && roots.refusal(rootRunId, { tokens: 1, nano: 1 }) === undefined,
    },
    onStop: (stop) => void stops.push(stop),
    onRevoked: (listener) => void revocations.push(listener),
    isStopped,
  };

  const revokedRun = (): Refused => ({ cap: 'lease', limit: 0, used: 0, isRevoked: true, message: 'The run was stopped' });
  const turns: TurnAutonomy = {
    // A turn that is its own root has spent nothing before.
    begin(turn) {
      roots.enterTurn(turn.rootRunId);
      return turn.run === undefined && turn.rootRunId === `root-turn-${turn.turnId}` ? undefined : begin(turn);
    },
    end({ rootRunId, run }) {
      roots.leaveTurn(rootRunId);
      if (run === undefined) return;
      leases.delete(run.leaseId);
      running.delete(run.leaseId);
    },
    capped: (budget: TurnBudget, turn) =>
      new RootBudget(budget, {
        roots,
        rootRunId: turn.rootRunId,
        maxCostOf: deps.maxCostOf,
        stopped: () => (isStopped(turn) ? revokedRun() : undefined),
      }),
  };

  const keeper = keepAlive({
    db,
    clock,
    log,
    everyMs: config.keepAliveMs,
    keptMs,
    roots,
    leases,
    renewed: running,
    leaseUntilMs: api.leaseUntilMs,
    hasTurn: (rootRunId) => deps.turnOf(rootRunId) !== undefined,
  });

  const methods = createAutonomyMethods({ ...deps, stopped, stops, revocations, profileOf });
  return {
    api,
    turns,
    methods,
    stopToken: createTokenStop({ ...deps, methods }),
    check: createCapabilityCheck({ ...deps, standing, guards, isStopped }),
    insteadOfAsking: createEscalation({ ...deps, profileOf }),
    shown: (agent, call) => guards.shown(agent, call),
    [Symbol.asyncDispose]: keeper,
  };
}
