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
  /** Has the next answer of an agent's models reported to `modelRecovered`. */
  readonly watchModels: (agent: Agent) => void;
  readonly checklist: WorkspaceApi['checklist'];
  readonly durable: DurableWork;
  readonly turn: TurnsApi['durable'];
  readonly inbox: InboxApi;
  /** The conversation of an agent's beats. */
  readonly targetOf: (agentId: string) => ConversationTarget;
  /** Whether a turn runs in a conversation. */
  readonly isBusy: (conversationRef: string) => boolean;
  readonly operations: HeartbeatOperations;
  /** Spreads the beats of agents; the same for each start. */
  readonly seed: Uint8Array;
  /** Changes with whatever may make a model take an agent's calls again. */
  readonly fingerprintOf: (agent: Agent) => string;
}

export interface Heartbeat extends AsyncDisposable {
  readonly api: HeartbeatApi;
  readonly methods: HeartbeatMethods;
  /** An agent was created, configured, suspended, resumed or deleted. */
  agentChanged(agentId: string): void;
  /** A model (`provider/model`) that had failed answers again, or may be tried again. */
  modelRecovered(model: string): void;
  /** Before the durable work starts, so that it knows which beats go on. */
  start(): Promise<void>;
  /** From here on nothing begins. */
  pause(): void;
}

/** The longest time between two looks at the clock, which may be set. */
const longestSleepMs = 60_000;
/** Beats of all agents whose turns run at once. */
const concurrency = 4;

/** Agents that look after things by themselves, when there is something to look after (docs/decisions/0024). */
export function createHeartbeat(deps: HeartbeatDeps): Heartbeat {
  const { db, bus, clock, log, agents } = deps;
  const states = new Map<string, HeartbeatStateRow>();
  /** When agents that are on beat next by their interval. */
  const due = new Map<string, number>();
  /** The last time by the interval that was asked for, by agent. */
  const slots = new Map<string, number>();
  const owed = new Owed();
  const beginning = new Set<Promise<void>>();
  let isStarted = false;
  let isClosing = false;
  let lookedAtMs = 0;
  let cancelTimer = () => {};

  const settings = (agent: Agent) => settingsOf(deps.config, agent.config.heartbeat);
  const stateOf = (agentId: string) => states.get(agentId) ?? newState(agentId);

  /** Null when it is over, and when it lies further ahead than any: then it is of a clock that was set back since. */
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
      // It was deleted while the end of its beat was written down.
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

  /** Sets when an agent beats next; nothing while it is off, suspended or stopped. */
  function plan(agentId: string): void {
    const agent = agents.find(agentId);
    const { stoppedBy, lastSlotMs } = stateOf(agentId);
    if (agent === undefined || agent.suspended || stoppedBy !== null || !settings(agent).enabled) {
      due.delete(agentId);
      return;
    }
    const { intervalMs, activeHours } = settings(agent);
    const now = clock.now();
    // A time far ahead was used up by a clock that was set back since.
    const afterMs = lastSlotMs > now && lastSlotMs <= now + intervalMs ? lastSlotMs : now;
    due.set(agentId, nextDue(afterMs, intervalMs, phaseOf(deps.seed, agentId, intervalMs), activeHours));
  }

  /** Asks for the beat that delivers what an agent is owed, as soon as its backoff is over. */
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

  /** Asks for what is due, begins what may begin, and sleeps until there is something again. */
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

  /** Whatever was reckoned by the clock as it went before lies too far ahead. */
  function setBack(byMs: number): void {
    coalescer.setBack(byMs);
    for (const agentId of due.keys()) plan(agentId);
  }

  function start(occurrence: Occurrence): void {
    const { agentId } = occurrence;
    if (agentId === undefined) return look(occurrence);
    const begun = begin(occurrence, agentId)
      .catch((error: unknown) => {
        log.error({ agentId, err: error }, 'A beat could not begin');
        coalescer.end(occurrence, { status: 'failed_before_side_effect', eventCount: 0, errorKind: 'internal' });
      })
      .finally(() => beginning.delete(begun));
    beginning.add(begun);
  }

  /** A beat without anything on the checklist and without anything that has happened ends here, before any model. */
  async function begin(occurrence: Occurrence, agentId: string): Promise<void> {
    const agent = agents.find(agentId);
    if (agent === undefined) return coalescer.end(occurrence, { status: 'aborted', eventCount: 0, errorKind: 'agent_unavailable' });
    const { correlationId, lane, reason, isPlanned = false } = occurrence;
    const { activeHours } = settings(agent);
    // It was due within them and comes late: the machine slept, or something held it.
    if (isPlanned && activeHours !== undefined && !isActive(activeHours, clock.now()))
      return coalescer.end(occurrence, { status: 'skipped', eventCount: 0 });
    const [checklist, events] = await Promise.all([deps.checklist(agent), db.read(waitingEvents, { agentId })]);
    if (checklist === undefined && events.length === 0) return coalescer.end(occurrence, { status: 'skipped', eventCount: 0 });
    // What would be written down for one that was deleted meanwhile, another of its name would find.
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

  /** The look at all heartbeats: times are reckoned anew, and what fails is told again. It calls no model. */
  function look(occurrence: Occurrence): void {
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
        message: `The heartbeat of agent ${agentId} is off: turn it on by heartbeat.update or agents.${agentId}.heartbeat`,
      };
    if (agent.suspended) return { refusal: 'suspended', message: `Agent is suspended: ${agentId}` };
    const { stoppedBy } = stateOf(agentId);
    // Jobs and webhooks have queued an event, which is owed from now on.
    if (stoppedBy !== null && reason !== 'manual' && reason !== 'cron' && reason !== 'hook')
      return {
        refusal: 'stopped',
        message: `The heartbeat of agent ${agentId} was stopped by its model (${stoppedBy}): trigger it by hand, or retry the provider, when that is settled`,
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
    return admission ?? refused({ refusal: 'full', message: 'Too many beats wait' });
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
    void db.write(keepState, state).catch((error: unknown) => log.error({ agentId: state.agentId, err: error }, 'The state of a heartbeat was lost'));
  }

  function forget(agentId: string): void {
    coalescer.cancel(agentId, 'agent_deleted');
    for (const map of [states, due, slots]) map.delete(agentId);
    owed.forget(agentId);
    void db.write(forgetHeartbeat, { agentId }).catch((error: unknown) => log.error({ agentId, err: error }, 'A heartbeat could not be forgotten'));
  }

  function agentChanged(agentId: string): void {
    const agent = agents.find(agentId);
    if (agent === undefined) forget(agentId);
    else {
      if (agent.suspended) coalescer.cancel(agentId, 'suspended');
      else if (!settings(agent).enabled) coalescer.cancel(agentId, 'disabled');
      beginAnew(agent);
      plan(agentId);
      retryOwed(agentId);
    }
    pump();
  }

  /** What stopped the beats under another configuration may not stop them under this one. */
  function beginAnew(agent: Agent): void {
    const state = stateOf(agent.id);
    if (state.stoppedBy !== null && state.stoppedUnder !== deps.fingerprintOf(agent)) keep(healthy(state));
  }

  /** Finishes what an earlier run of the daemon had done, but for writing it down. */
  async function recover(): Promise<void> {
    for (const { beat, work } of await db.read(deps.operations.recover, {})) {
      const { workId: id, agentId, correlationId, lane, reason, startedAtMs, eventCount } = beat;
      const occurrence = { correlationId, agentId, lane, reason, startedAtMs };
      coalescer.adopt(occurrence);
      // Its turn goes on by itself.
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
        beginAnew(agent);
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
