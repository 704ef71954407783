import type { Clock } from '../../../../kernel/clock.ts';
import type { Agent, AgentsApi } from '../../../agents/agents/api.ts';
import type { HeartbeatConfig } from '../config.ts';
import type { HeartbeatStateRow } from '../store.ts';
import { nextDue, phaseOf } from './due-times.ts';

export interface PlanDeps {
  readonly clock: Clock;
  readonly agents: Pick<AgentsApi, 'find'>;
  /** Seed that spreads the beats of agents; the same for each start. */
  readonly seed: Uint8Array;
  readonly settingsOf: (agent: Agent) => HeartbeatConfig;
  readonly stateOf: (agentId: string) => HeartbeatStateRow;
}

/** When the beats by the interval are due. */
export class BeatPlan {
  readonly #deps: PlanDeps;
  /** Next beat of each active agent. */
  readonly #due = new Map<string, number>();
  /** Time for which each agent's last beat was requested. */
  readonly #slots = new Map<string, number>();

  constructor(deps: PlanDeps) {
    this.#deps = deps;
  }

  dueOf(agentId: string): number | null {
    return this.#due.get(agentId) ?? null;
  }

  slotOf(agentId: string): number | undefined {
    return this.#slots.get(agentId);
  }

  /** Returns the time of the soonest beat. */
  nextMs(): number | undefined {
    return this.#due.size === 0 ? undefined : Math.min(...this.#due.values());
  }

  /** Plans the next beat of an agent; none while it is off, suspended or stopped. */
  plan(agentId: string): void {
    const { clock, agents, seed, settingsOf, stateOf } = this.#deps;
    const agent = agents.find(agentId);
    const { stoppedBy, lastSlotMs } = stateOf(agentId);
    if (agent === undefined || agent.suspended || stoppedBy !== null || !settingsOf(agent).enabled) {
      this.#due.delete(agentId);
      return;
    }
    const { intervalMs, activeHours } = settingsOf(agent);
    const now = clock.now();
    // A time far ahead was used before the clock stepped back.
    const afterMs = lastSlotMs > now && lastSlotMs <= now + intervalMs ? lastSlotMs : now;
    this.#due.set(agentId, nextDue(afterMs, intervalMs, phaseOf(seed, agentId, intervalMs), activeHours));
  }

  /** Plans the next beats of all agents again, because the clock was changed. */
  planAll(): void {
    for (const agentId of this.#due.keys()) this.plan(agentId);
  }

  /** Returns the beats that are due, and plans the ones after them. */
  takeDue(): { readonly agentId: string; readonly dueAtMs: number }[] {
    const now = this.#deps.clock.now();
    const taken = [...this.#due].flatMap(([agentId, dueAtMs]) => (dueAtMs > now ? [] : [{ agentId, dueAtMs }]));
    for (const { agentId, dueAtMs } of taken) {
      this.#slots.set(agentId, dueAtMs);
      this.plan(agentId);
    }
    return taken;
  }

  forget(agentId: string): void {
    this.#due.delete(agentId);
    this.#slots.delete(agentId);
  }
}
