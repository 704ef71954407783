import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import { newId } from '../../../kernel/ids.ts';
import type { Log } from '../../../kernel/log.ts';
import type { Agent, AgentsApi, ConfigureAgent } from '../../agents/agents/api.ts';
import type { DurableWork } from '../durable/api.ts';
import type { InboxApi } from '../inbox/api.ts';
import type { ConversationTarget } from '../../conversations/sessions/api.ts';
import type { TurnsApi } from '../../conversations/turns/api.ts';
import type { WorkspaceApi } from '../../environment/workspace/api.ts';
import { type Admission, beatKind, type HeartbeatApi, type Refused, type WakeRequest } from './api.ts';
import { type BeatPayload, BeatResult, createBeats } from './beat/beat.ts';
import { isActive } from './timing/active-hours.ts';
import { beatMessage } from './beat/beat-prompt.ts';
import { createCoalescer, type Occurrence } from './timing/coalescer.ts';
import { type HeartbeatConfig, settingsOf } from './config.ts';
import { nextDue, phaseOf } from './timing/due-times.ts';
import { healthy, longestBackoffMs, newState, released } from './beat/health.ts';
import { createHeartbeatMethods, type HeartbeatMethods } from './methods.ts';
import type { HeartbeatOperations } from './beat/operations.ts';
import { Owed } from './beat/owed.ts';
import { forgetHeartbeat, type HeartbeatStateRow, keepState, loadHeartbeats, waitingEvents } from './store.ts';

export interface HeartbeatDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly config: HeartbeatConfig;
  readonly agents: AgentsApi;
  readonly configure: ConfigureAgent;
  readonly knowsModel: (name: string) => boolean;
  /** Requests that the next answer of an agent's models is reported to `modelRecovered`. */
  readonly watchModels: (agent: Agent) => void;
  readonly checklist: WorkspaceApi['checklist'];
  readonly durable: DurableWork;
  readonly turn: TurnsApi['durable'];
  readonly inbox: InboxApi;
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
  /** Stops starting beats. */
  pause(): void;
}

/** Longest time between two checks of the clock, which may be changed. */
const longestSleepMs = 60_000;
/** Maximum beats of all agents whose turns run concurrently. */
const concurrency = 4;

/** Runs agents on their own when there is something to do (docs/decisions/0024). */
export function createHeartbeat(deps: HeartbeatDeps): Heartbeat {
  const { db, bus, clock, log, agents } = deps;
  const states = new Map<string, HeartbeatStateRow>();
  /** Next beat by the interval, for each active agent. */
  const due = new Map<string, number>();
  /** The last requested time by the interval, for each agent. */
  const slots = new Map<string, number>();
  const owed = new Owed();
  const beginning = new Set<Promise<void>>();
  let isStarted = false;
  let isClosing = false;
  let lookedAtMs = 0;
  let cancelTimer = () => {};

  const settings = (agent: Agent) => settingsOf(deps.config, agent.config.heartbeat);
  const stateOf = (agentId: string) => states.get(agentId) ?? newState(agentId);

  /** Returns null when the backoff is over, or too far ahead because the clock stepped back since. */
  function backoffUntil(agentId: string): number | null {
    const { backoffUntilMs } = stateOf(agentId);
    const now = clock.now();
    return backoffUntilMs !== null && backoffUntilMs > now && backoffUntilMs <= now + longestBackoffMs ? backoffUntilMs : null;
  }

  const coalescer = createCoalescer({
    clock,
    bus,
    isBusy: (agentId) => deps.isBusy(deps.targetOf(agentId).ref),
    backoffUntil,
    start,
    changed: pump,
  });

  const beats = createBeats({
    db,
    bus,
    clock,
    log,
    agents,
    turn: deps.turn,
    inbox: deps.inbox,
    targetOf: deps.targetOf,
    operations: deps.operations,
    coalescer,
    settingsOf: settings,
    fingerprintOf: deps.fingerprintOf,
    stateOf,
    changed(state, failure) {
      const { agentId, consecutiveErrors, stoppedBy } = state;
      // The agent was deleted while the end of its beat was being stored.
      if (agents.find(agentId) === undefined) return;
      states.set(agentId, state);
      if (consecutiveErrors === 0) owed.forget(agentId);
      else owed.failed(agentId, failure);
      if (stoppedBy !== null && !owed.has(agentId)) coalescer.cancel(agentId, 'stopped');
      plan(agentId);
      retryOwed(agentId);
    },
  });
  deps.durable.handle(beatKind, beats.handler, { concurrency, maxAttempts: 1, handlesSuspension: true, gaveUp: beats.gaveUp });

  /** Schedules the next beat of an agent; none while it is off, suspended or stopped. */
  function plan(agentId: string): void {
    const agent = agents.find(agentId);
    const { stoppedBy, lastSlotMs } = stateOf(agentId);
    if (agent === undefined || agent.suspended || stoppedBy !== null || !settings(agent).enabled) {
      due.delete(agentId);
      return;
    }
    const { intervalMs, activeHours } = settings(agent);
    const now = clock.now();
    // A time far ahead was used before the clock stepped back.
    const afterMs = lastSlotMs > now && lastSlotMs <= now + intervalMs ? lastSlotMs : now;
    due.set(agentId, nextDue(afterMs, intervalMs, phaseOf(deps.seed, agentId, intervalMs), activeHours));
  }

  /** Requests the beat that delivers an agent's undelivered events once its backoff is over. */
  function retryOwed(agentId: string): void {
    const agent = agents.find(agentId);
    if (isClosing || !owed.has(agentId) || agent === undefined || agent.suspended || !settings(agent).enabled) return;
    coalescer.wake({ agentId, reason: 'wake', lane: 'normal', bypassesSpacing: true, dueAtMs: backoffUntil(agentId) ?? clock.now() });
  }

  function modelRecovered(model: string): void {
    for (const state of states.values()) {
      const { agentId, stoppedBy, lastErrorKind } = state;
      const isProviderAtFault = stoppedBy !== null || lastErrorKind === 'transient';
      if (!isProviderAtFault || !owed.waitsFor(agentId, model) || coalescer.runningSince(agentId) !== null) continue;
      keep(released(state));
      plan(agentId);
      retryOwed(agentId);
    }
    pump();
  }

  /** Requests due beats, starts those that may start, and sleeps until the next one. */
  function pump(): void {
    if (!isStarted || isClosing) return;
    const now = clock.now();
    if (now < lookedAtMs) setBack(lookedAtMs - now);
    lookedAtMs = now;
    for (const [agentId, dueAtMs] of due) {
      if (dueAtMs > now) continue;
      slots.set(agentId, dueAtMs);
      plan(agentId);
      coalescer.wake({ agentId, reason: 'interval', lane: 'normal', bypassesSpacing: false, dueAtMs });
    }
    let next = coalescer.run();
    for (const dueAtMs of due.values()) if (next === undefined || dueAtMs < next) next = dueAtMs;
    cancelTimer();
    cancelTimer = next === undefined ? () => {} : clock.after(Math.max(0, Math.min(next - clock.now(), longestSleepMs)), pump);
  }

  /** Moves times that were computed before the clock stepped back, as they are too far ahead. */
  function setBack(byMs: number): void {
    coalescer.setBack(byMs);
    for (const agentId of due.keys()) plan(agentId);
  }

  function start(occurrence: Occurrence): void {
    const { agentId } = occurrence;
    if (agentId === undefined) return checkAll(occurrence);
    const begun = begin(occurrence, agentId)
      .catch((error: unknown) => {
        log.error({ agentId, err: error }, 'Failed to start a heartbeat');
        coalescer.end(occurrence, { status: 'failed_before_side_effect', eventCount: 0, errorKind: 'internal' });
      })
      .finally(() => beginning.delete(begun));
    beginning.add(begun);
  }

  /** Starts a beat; one without checklist items and events ends here, before any model call. */
  async function begin(occurrence: Occurrence, agentId: string): Promise<void> {
    const agent = agents.find(agentId);
    if (agent === undefined) return coalescer.end(occurrence, { status: 'aborted', eventCount: 0, errorKind: 'agent_unavailable' });
    const { correlationId, lane, reason, isPlanned = false } = occurrence;
    const { activeHours } = settings(agent);
    // The beat was due within the hours but is late, because the machine slept or the beat was deferred.
    if (isPlanned && activeHours !== undefined && !isActive(activeHours, clock.now()))
      return coalescer.end(occurrence, { status: 'skipped', eventCount: 0 });
    const [checklist, events] = await Promise.all([deps.checklist(agent), db.read(waitingEvents, { agentId })]);
    if (checklist === undefined && events.length === 0) return coalescer.end(occurrence, { status: 'skipped', eventCount: 0 });
    // State stored for a deleted agent would be found by a later agent of the same name.
    if (agents.find(agentId) === undefined) return coalescer.end(occurrence, { status: 'aborted', eventCount: 0, errorKind: 'agent_unavailable' });
    const startedAtMs = clock.now();
    const state = { ...stateOf(agentId), lastRunAtMs: startedAtMs, lastSlotMs: slots.get(agentId) ?? stateOf(agentId).lastSlotMs };
    const workId = newId('wi');
    const eventCount = events.length;
    const payload: BeatPayload = {
      correlationId,
      lane,
      reason,
      startedAtMs,
      eventCount,
      ...beatMessage({ prompt: settings(agent).prompt, checklist, events, nowMs: startedAtMs }),
    };
    coalescer.began(agentId, startedAtMs);
    states.set(agentId, state);
    await db.write(deps.operations.begin, {
      beat: { workId, agentId, correlationId, lane, reason, eventCount, startedAtMs },
      state,
      lastEventId: events.at(-1)?.id ?? 0,
      work: { id: workId, kind: beatKind, key: workId, digest: correlationId, agentId, payload, atMs: startedAtMs },
    });
    deps.durable.wake(beatKind);
  }

  /** Checks all heartbeats: recomputes due times and reports failures again. Calls no model. */
  function checkAll(occurrence: Occurrence): void {
    for (const agent of agents.list()) {
      plan(agent.id);
      const { consecutiveErrors, lastErrorKind, backoffUntilMs, stoppedBy } = stateOf(agent.id);
      if (lastErrorKind === null || !settings(agent).enabled) continue;
      const now = clock.now();
      const backoffMs = Math.max(0, (backoffUntilMs ?? now) - now);
      const alert = { agentId: agent.id, consecutiveErrors, classification: lastErrorKind, reason: stoppedBy ?? lastErrorKind, backoffMs };
      bus.emit('scheduler:heartbeat_alert', { ...alert, timestamp: now });
    }
    coalescer.end(occurrence, { status: 'settled', eventCount: 0 });
  }

  function refusal({ agentId, reason }: WakeRequest): Omit<Refused, 'status' | 'accepted' | 'coalesced'> | undefined {
    const agent = agents.find(agentId);
    if (isClosing) return { refusal: 'closing', message: 'The daemon is stopping' };
    if (agent === undefined) return { refusal: 'unknown_agent', message: `Agent not found: ${agentId}` };
    if (!settings(agent).enabled)
      return {
        refusal: 'disabled',
        message: `The heartbeat of agent ${agentId} is off: turn it on with heartbeat.update or agents.${agentId}.heartbeat`,
      };
    if (agent.suspended) return { refusal: 'suspended', message: `Agent is suspended: ${agentId}` };
    const { stoppedBy } = stateOf(agentId);
    // Jobs and webhooks have queued an event that must be delivered.
    if (stoppedBy !== null && reason !== 'manual' && reason !== 'cron' && reason !== 'hook')
      return {
        refusal: 'stopped',
        message: `The heartbeat of agent ${agentId} was stopped by its model (${stoppedBy}): once fixed, trigger it manually or retry the provider`,
      };
    return undefined;
  }

  const refused = (why: Omit<Refused, 'status' | 'accepted' | 'coalesced'>): Refused => ({
    status: 'refused',
    accepted: false,
    coalesced: false,
    ...why,
  });

  function order(agentId: string | undefined, request: Omit<WakeRequest, 'agentId'>): Admission {
    const { reason, lane = 'normal', bypassSpacing = false, mode = 'now' } = request;
    const dueAtMs = mode === 'now' || agentId === undefined ? clock.now() : (due.get(agentId) ?? clock.now());
    const admission = coalescer.wake({ agentId, reason, lane, bypassesSpacing: bypassSpacing, dueAtMs });
    pump();
    return admission ?? refused({ refusal: 'full', message: 'Too many beats are pending' });
  }

  function wake(request: WakeRequest): Admission {
    const why = refusal(request);
    if (why !== undefined) return refused(why);
    const { agentId } = request;
    if (stateOf(agentId).stoppedBy !== null && request.reason !== 'manual') owed.add(agentId);
    return order(agentId, request);
  }

  function noticeEvent(agentId: string): void {
    if (stateOf(agentId).stoppedBy === null) return;
    owed.add(agentId);
    retryOwed(agentId);
    pump();
  }

  function keep(state: HeartbeatStateRow): void {
    states.set(state.agentId, state);
    void db.write(keepState, state).catch((error: unknown) => log.error({ agentId: state.agentId, err: error }, 'Failed to store heartbeat state'));
  }

  function forget(agentId: string): void {
    coalescer.cancel(agentId, 'agent_deleted');
    for (const map of [states, due, slots]) map.delete(agentId);
    owed.forget(agentId);
    void db.write(forgetHeartbeat, { agentId }).catch((error: unknown) => log.error({ agentId, err: error }, 'Failed to delete a heartbeat'));
  }

  function agentChanged(agentId: string): void {
    const agent = agents.find(agentId);
    if (agent === undefined) forget(agentId);
    else {
      if (agent.suspended) coalescer.cancel(agentId, 'suspended');
      else if (!settings(agent).enabled) coalescer.cancel(agentId, 'disabled');
      clearStaleStop(agent);
      plan(agentId);
      retryOwed(agentId);
    }
    pump();
  }

  /** Clears a stop that a changed configuration may have resolved. */
  function clearStaleStop(agent: Agent): void {
    const state = stateOf(agent.id);
    if (state.stoppedBy !== null && state.stoppedUnder !== deps.fingerprintOf(agent)) keep(healthy(state));
  }

  /** Finishes beats whose work an earlier process completed without storing their end. */
  async function recover(): Promise<void> {
    for (const { beat, work } of await db.read(deps.operations.recover, {})) {
      const { workId: id, agentId, correlationId, lane, reason, startedAtMs, eventCount } = beat;
      const occurrence = { correlationId, agentId, lane, reason, startedAtMs };
      coalescer.adopt(occurrence);
      // Its turn resumes on its own.
      if (work !== undefined && (work.state === 'accepted' || work.state === 'running')) continue;
      const parsed = BeatResult.safeParse(work?.result);
      const result = parsed.data ?? { kind: 'failed' as const, errorKind: work?.errorKind ?? 'lost', spoke: true };
      await beats.finish({ id, agentId, occurrence, eventCount }, result, { isUnknown: work?.state !== 'done' && work?.state !== 'failed' });
    }
  }

  return {
    api: { wake, noticeEvent },
    methods: createHeartbeatMethods({
      db,
      agents,
      configure: deps.configure,
      knowsModel: deps.knowsModel,
      settingsOf: settings,
      stateOf,
      backoffUntil,
      dueOf: (agentId) => due.get(agentId) ?? null,
      runningSince: coalescer.runningSince,
      wake: (agentId, reason) => wake({ agentId, reason, bypassSpacing: reason === 'manual' }),
      wakeMonitoring: () => (isClosing ? refused({ refusal: 'closing', message: 'The daemon is stopping' }) : order(undefined, { reason: 'wake' })),
    }),
    agentChanged,
    modelRecovered,
    async start() {
      const known = await db.read(loadHeartbeats, {});
      for (const state of known.states) states.set(state.agentId, state);
      await recover();
      for (const agent of agents.list()) {
        clearStaleStop(agent);
        const { lastRunAtMs, consecutiveErrors } = stateOf(agent.id);
        if (consecutiveErrors > 0) deps.watchModels(agent);
        if (lastRunAtMs !== null) coalescer.began(agent.id, lastRunAtMs);
        plan(agent.id);
      }
      isStarted = true;
      for (const { agentId } of known.queued) {
        if (stateOf(agentId).consecutiveErrors === 0) continue;
        owed.add(agentId);
        retryOwed(agentId);
      }
      for (const { agentId, reason } of known.urgent) wake({ agentId, reason });
      pump();
    },
    pause() {
      isClosing = true;
      cancelTimer();
      coalescer.cancel(undefined, 'shutdown');
    },
    async [Symbol.asyncDispose]() {
      isClosing = true;
      cancelTimer();
      coalescer.cancel(undefined, 'shutdown');
      await Promise.all(beginning);
    },
  };
}
