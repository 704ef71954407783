import type { Live } from '../../../kernel/config/live.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { Log } from '../../../kernel/log.ts';
import type { Agent, AgentsApi, ConfigureAgent } from '../../agents/agents/api.ts';
import type { ConversationTarget } from '../../conversations/sessions/api.ts';
import type { TurnsApi } from '../../conversations/turns/api.ts';
import type { WorkspaceApi } from '../../environment/workspace/api.ts';
import type { DurableWork } from '../durable/api.ts';
import type { EndpointsApi } from '../../channels/delivery/api.ts';
import type { InboxApi } from '../inbox/api.ts';
import { beatKind, type HeartbeatApi } from './api.ts';
import { type BeatFailure, createBeats } from './beat/beat.ts';
import { beginBeat } from './beat/begin.ts';
import { healthy } from './beat/health.ts';
import type { HeartbeatOperations } from './beat/operations.ts';
import { Owed } from './beat/owed.ts';
import { recoverBeats } from './beat/recover.ts';
import { BeatStates } from './beat/states.ts';
import { type HeartbeatConfig, settingsOf } from './config.ts';
import { createHeartbeatMethods, type HeartbeatMethods } from './methods.ts';
import { type HeartbeatStateRow, loadHeartbeats } from './store.ts';
import { Coalescer, type Occurrence } from './timing/coalescer.ts';
import { BeatPlan } from './timing/plan.ts';
import { Pump } from './timing/pump.ts';
import { Wakes } from './wakes.ts';

export interface HeartbeatDeps {
  readonly db: Db;
  /** Id of this run of the daemon. */
  readonly bootId: string;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly config: Live<HeartbeatConfig>;
  readonly agents: AgentsApi;
  readonly configure: ConfigureAgent;
  readonly knowsModel: (name: string) => boolean;
  /** Requests that the next answer of an agent's models is reported to `modelRecovered`. */
  readonly watchModels: (agent: Agent) => void;
  readonly checklist: WorkspaceApi['checklist'];
  readonly durable: DurableWork;
  readonly turn: TurnsApi['runDurably'];
  readonly inbox: InboxApi;
  readonly endpoints: Pick<EndpointsApi, 'address'>;
  /** Returns the conversation of an agent's beats. */
  readonly targetOf: (agentId: string) => ConversationTarget;
  /** Returns whether a turn is running in a conversation. */
  readonly isBusy: (conversationRef: string) => boolean;
  readonly operations: HeartbeatOperations;
  /** Seed that spreads the beats of agents; the same for each start. */
  readonly seed: Uint8Array;
  /** Returns a value that changes when a model may accept an agent's calls again. */
  readonly fingerprintOf: (agent: Agent) => string;
}

export interface Heartbeat extends AsyncDisposable {
  readonly api: HeartbeatApi;
  readonly methods: HeartbeatMethods;
  /** Call when an agent was created, configured, suspended, resumed or deleted. */
  agentChanged(agentId: string): void;
  /** Call when a failed model (`provider/model`) answers again or may be retried. */
  modelRecovered(model: string): void;
  /** Call before durable work starts, so that resumed beats are known. */
  start(): Promise<void>;
  /** Ends the beats that daemons left which died while this one runs. Call before their work is taken over. */
  recover(): Promise<void>;
  /** Stops starting beats. */
  pause(): void;
}

/** Maximum beats of all agents whose turns run concurrently. */
const concurrency = 4;

/** Runs agents on their own when there is something to do (docs/decisions/0024). */
export function createHeartbeat(deps: HeartbeatDeps): Heartbeat {
  return new AgentHeartbeats(deps);
}

class AgentHeartbeats implements Heartbeat {
  readonly api: HeartbeatApi;
  readonly methods: HeartbeatMethods;
  readonly #deps: HeartbeatDeps;
  readonly #states: BeatStates;
  readonly #owed = new Owed();
  readonly #plan: BeatPlan;
  readonly #pump: Pump;
  readonly #coalescer: Coalescer;
  readonly #wakes: Wakes;
  readonly #beats: ReturnType<typeof createBeats>;
  readonly #beginning = new Set<Promise<void>>();
  readonly #storing = new Map<string, Promise<boolean>>();

  constructor(deps: HeartbeatDeps) {
    const { db, bus, clock, agents, seed } = deps;
    const stateOf = (agentId: string) => states.of(agentId);
    const states = new BeatStates(deps);
    const plan = new BeatPlan({ clock, agents, seed, settingsOf: this.#settingsOf, stateOf });
    const coalescer = new Coalescer({
      clock,
      bus,
      isBusy: (agentId) => deps.isBusy(deps.targetOf(agentId).ref),
      backoffUntil: (agentId) => states.backoffUntil(agentId),
      start: (occurrence) => this.#start(occurrence),
      changed: () => this.#pump.run(),
    });
    this.#deps = deps;
    this.#states = states;
    this.#plan = plan;
    this.#coalescer = coalescer;
    this.#pump = new Pump(
      clock,
      () => this.#runDue(),
      (byMs) => this.#setBack(byMs),
    );
    this.#wakes = new Wakes({ clock, agents, settingsOf: this.#settingsOf, states, plan, coalescer, owed: this.#owed, pump: this.#pump });
    this.#beats = createBeats({
      ...deps,
      coalescer,
      beginning: this.#storing,
      settingsOf: this.#settingsOf,
      stateOf,
      changed: (state, failure) => this.#beatEnded(state, failure),
    });
    const { handler, gaveUp } = this.#beats;
    deps.durable.handle(beatKind, handler, { concurrency, maxAttempts: 1, handlesSuspension: true, gaveUp });
    const wakes = this.#wakes;
    this.api = { wake: (request) => wakes.wake(request), noticeEvent: (agentId) => wakes.noticeEvent(agentId) };
    this.methods = createHeartbeatMethods({
      db,
      agents,
      configure: deps.configure,
      knowsModel: deps.knowsModel,
      settingsOf: this.#settingsOf,
      stateOf,
      backoffUntil: (agentId) => states.backoffUntil(agentId),
      dueOf: (agentId) => plan.dueOf(agentId),
      runningSince: (agentId) => coalescer.runningSince(agentId),
      wake: (agentId, reason) => wakes.wake({ agentId, reason, bypassSpacing: reason === 'manual' }),
      wakeMonitoring: () => wakes.wakeMonitoring(),
    });
  }

  async start(): Promise<void> {
    const { db, agents, watchModels } = this.#deps;
    const known = await db.read(loadHeartbeats, {});
    for (const state of known.states) this.#states.set(state);
    await this.recover();
    // Removed while the daemon was down: a later agent of the same id must not get the events of the former one.
    for (const agentId of new Set([...known.states, ...known.queued].map((one) => one.agentId)))
      if (agents.find(agentId) === undefined) this.#states.forget(agentId);
    for (const agent of agents.list()) {
      this.#clearStaleStop(agent);
      const { lastRunAtMs, consecutiveErrors } = this.#states.of(agent.id);
      if (consecutiveErrors > 0) watchModels(agent);
      if (lastRunAtMs !== null) this.#coalescer.began(agent.id, lastRunAtMs);
      this.#plan.plan(agent.id);
    }
    this.#pump.start();
    for (const { agentId } of known.queued) {
      if (this.#states.of(agentId).consecutiveErrors === 0) continue;
      this.#owed.add(agentId);
      this.#wakes.retryOwed(agentId);
    }
    for (const { agentId, reason } of known.urgent) this.#wakes.wake({ agentId, reason });
    this.#pump.run();
  }

  recover(): Promise<void> {
    const { db, operations } = this.#deps;
    return recoverBeats({ db, recover: operations.recover, coalescer: this.#coalescer, finish: this.#beats.finish });
  }

  agentChanged(agentId: string): void {
    const agent = this.#deps.agents.find(agentId);
    if (agent === undefined) this.#forget(agentId);
    else {
      if (agent.suspended) this.#coalescer.cancel(agentId, 'suspended');
      else if (!this.#settingsOf(agent).enabled) this.#coalescer.cancel(agentId, 'disabled');
      this.#clearStaleStop(agent);
      this.#plan.plan(agentId);
      this.#wakes.retryOwed(agentId);
    }
    this.#pump.run();
  }

  modelRecovered(model: string): void {
    this.#wakes.modelRecovered(model);
  }

  pause(): void {
    this.#pump.close();
    this.#coalescer.cancel(undefined, 'shutdown');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.pause();
    await Promise.all(this.#beginning);
  }

  readonly #settingsOf = (agent: Agent): HeartbeatConfig => settingsOf(this.#deps.config.current, agent.config.heartbeat);

  /** Requests due beats and starts those that may start; returns when the next one is due. */
  #runDue(): number | undefined {
    for (const { agentId, dueAtMs } of this.#plan.takeDue())
      this.#coalescer.wake({ agentId, reason: 'interval', lane: 'normal', bypassesSpacing: false, dueAtMs });
    const next = [this.#coalescer.run(), this.#plan.nextMs()].filter((ms) => ms !== undefined);
    return next.length === 0 ? undefined : Math.min(...next);
  }

  /** Moves times that were computed before the clock stepped back, as they are too far ahead. */
  #setBack(byMs: number): void {
    this.#coalescer.setBack(byMs);
    this.#plan.planAll();
  }

  #start(occurrence: Occurrence): void {
    const { agentId } = occurrence;
    if (agentId === undefined) return this.#checkAll(occurrence);
    const { log } = this.#deps;
    const deps = {
      ...this.#deps,
      settingsOf: this.#settingsOf,
      states: this.#states,
      plan: this.#plan,
      coalescer: this.#coalescer,
      beginning: this.#storing,
    };
    const begun = beginBeat(deps, occurrence, agentId)
      .catch((error: unknown) => {
        log.error({ agentId, err: error }, 'Failed to start a heartbeat');
        this.#coalescer.end(occurrence, { status: 'failed_before_side_effect', eventCount: 0, errorKind: 'internal' });
      })
      .finally(() => this.#beginning.delete(begun));
    this.#beginning.add(begun);
  }

  /** Checks all heartbeats: recomputes due times and reports failures again. Calls no model. */
  #checkAll(occurrence: Occurrence): void {
    const { agents, bus, clock } = this.#deps;
    for (const agent of agents.list()) {
      this.#plan.plan(agent.id);
      const { consecutiveErrors, lastErrorKind, backoffUntilMs, stoppedBy } = this.#states.of(agent.id);
      if (lastErrorKind === null || !this.#settingsOf(agent).enabled) continue;
      const now = clock.now();
      const backoffMs = Math.max(0, (backoffUntilMs ?? now) - now);
      const alert = { agentId: agent.id, consecutiveErrors, classification: lastErrorKind, reason: stoppedBy ?? lastErrorKind, backoffMs };
      bus.emit('scheduler:heartbeat_alert', { ...alert, timestamp: now });
    }
    this.#coalescer.end(occurrence, { status: 'settled', eventCount: 0 });
  }

  /** Called when the end of a beat was stored. */
  #beatEnded(state: HeartbeatStateRow, failure: BeatFailure | undefined): void {
    const { agentId, consecutiveErrors, stoppedBy } = state;
    // The agent was deleted while the end of its beat was being stored.
    if (this.#deps.agents.find(agentId) === undefined) return;
    this.#states.set(state);
    if (consecutiveErrors === 0) this.#owed.forget(agentId);
    else this.#owed.failed(agentId, failure);
    if (stoppedBy !== null && !this.#owed.has(agentId)) this.#coalescer.cancel(agentId, 'stopped');
    this.#plan.plan(agentId);
    this.#wakes.retryOwed(agentId);
  }

  #forget(agentId: string): void {
    this.#coalescer.cancel(agentId, 'agent_deleted');
    this.#states.forget(agentId);
    this.#plan.forget(agentId);
    this.#owed.forget(agentId);
  }

  /** Clears a stop that a changed configuration may have resolved. */
  #clearStaleStop(agent: Agent): void {
    const state = this.#states.of(agent.id);
    if (state.stoppedBy !== null && state.stoppedUnder !== this.#deps.fingerprintOf(agent)) this.#states.keep(healthy(state));
  }
}
