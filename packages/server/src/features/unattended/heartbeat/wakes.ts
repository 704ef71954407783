import type { Clock } from '../../../kernel/clock.ts';
import type { Agent, AgentsApi } from '../../agents/agents/api.ts';
import type { Admission, Refused, WakeRequest } from './api.ts';
import type { Owed } from './beat/owed.ts';
import { released } from './beat/health.ts';
import type { BeatStates } from './beat/states.ts';
import type { HeartbeatConfig } from './config.ts';
import type { Coalescer } from './timing/coalescer.ts';
import type { BeatPlan } from './timing/plan.ts';
import type { Pump } from './timing/pump.ts';

export interface WakesDeps {
  readonly clock: Clock;
  readonly agents: Pick<AgentsApi, 'find'>;
  readonly settingsOf: (agent: Agent) => HeartbeatConfig;
  readonly states: BeatStates;
  readonly plan: BeatPlan;
  readonly coalescer: Coalescer;
  readonly owed: Owed;
  readonly pump: Pump;
}

type Refusal = Pick<Refused, 'refusal' | 'message'>;

/** Admits requests for beats, and requests those that deliver events which a failing provider left behind. */
export class Wakes {
  readonly #deps: WakesDeps;

  constructor(deps: WakesDeps) {
    this.#deps = deps;
  }

  /** See `HeartbeatApi.wake`. */
  wake(request: WakeRequest): Admission {
    const refusal = this.#refusalOf(request);
    if (refusal !== undefined) return refused(refusal);
    const { agentId, reason } = request;
    if (this.#deps.states.of(agentId).stoppedBy !== null && reason !== 'manual') this.#deps.owed.add(agentId);
    return this.#order(agentId, request);
  }

  /** Requests the check of all heartbeats. */
  wakeMonitoring(): Admission {
    return this.#deps.pump.isClosed ? refused(closing) : this.#order(undefined, { reason: 'wake' });
  }

  /** See `HeartbeatApi.noticeEvent`. */
  noticeEvent(agentId: string): void {
    const { states, owed, pump } = this.#deps;
    if (states.of(agentId).stoppedBy === null) return;
    owed.add(agentId);
    this.retryOwed(agentId);
    pump.run();
  }

  /** Requests the beat that delivers an agent's undelivered events once its backoff is over. */
  retryOwed(agentId: string): void {
    const { clock, agents, settingsOf, states, coalescer, owed, pump } = this.#deps;
    const agent = agents.find(agentId);
    if (pump.isClosed || !owed.has(agentId) || agent === undefined || agent.suspended || !settingsOf(agent).enabled) return;
    const dueAtMs = states.backoffUntil(agentId) ?? clock.now();
    coalescer.wake({ agentId, reason: 'wake', lane: 'normal', bypassesSpacing: true, dueAtMs });
  }

  /** Releases the agents whose beats failed because of a model that answers again. */
  modelRecovered(model: string): void {
    const { states, plan, coalescer, owed, pump } = this.#deps;
    for (const state of states.all()) {
      const { agentId, stoppedBy, lastErrorKind } = state;
      const isProviderAtFault = stoppedBy !== null || lastErrorKind === 'transient';
      if (!isProviderAtFault || !owed.waitsFor(agentId, model) || coalescer.runningSince(agentId) !== null) continue;
      states.keep(released(state));
      plan.plan(agentId);
      this.retryOwed(agentId);
    }
    pump.run();
  }

  #order(agentId: string | undefined, request: Omit<WakeRequest, 'agentId'>): Admission {
    const { clock, plan, coalescer, pump } = this.#deps;
    const { reason, lane = 'normal', bypassSpacing = false, mode = 'now' } = request;
    const dueAtMs = mode === 'now' || agentId === undefined ? clock.now() : (plan.dueOf(agentId) ?? clock.now());
    const admission = coalescer.wake({ agentId, reason, lane, bypassesSpacing: bypassSpacing, dueAtMs });
    pump.run();
    return admission ?? refused({ refusal: 'full', message: 'Too many beats are pending' });
  }

  #refusalOf({ agentId, reason }: WakeRequest): Refusal | undefined {
    const { agents, settingsOf, states, pump } = this.#deps;
    const agent = agents.find(agentId);
    if (pump.isClosed) return closing;
    if (agent === undefined) return { refusal: 'unknown_agent', message: `Agent not found: ${agentId}` };
    if (!settingsOf(agent).enabled)
      return {
        refusal: 'disabled',
        message: `The heartbeat of agent ${agentId} is off: turn it on with heartbeat.update or agents.${agentId}.heartbeat`,
      };
    if (agent.suspended) return { refusal: 'suspended', message: `Agent is suspended: ${agentId}` };
    const { stoppedBy } = states.of(agentId);
    // Jobs and webhooks have queued an event that must be delivered.
    if (stoppedBy !== null && reason !== 'manual' && reason !== 'cron' && reason !== 'hook')
      return {
        refusal: 'stopped',
        message: `The heartbeat of agent ${agentId} was stopped by its model (${stoppedBy}): once fixed, trigger it manually or retry the provider`,
      };
    return undefined;
  }
}

const closing: Refusal = { refusal: 'closing', message: 'The daemon is stopping' };

const refused = (why: Refusal): Refused => ({ status: 'refused', accepted: false, coalesced: false, ...why });
