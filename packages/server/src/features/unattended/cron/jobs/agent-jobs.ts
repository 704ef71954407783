import type { Clock } from '../../../../kernel/clock.ts';
import type { Live } from '../../../../kernel/config/live.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import { newId } from '../../../../kernel/ids.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { AgentsApi } from '../../../agents/agents/api.ts';
import type { CronConfig } from '../config.ts';
import { reconcileBuiltIns, removeAgentJobs } from '../store.ts';
import { builtInJobs } from './built-in.ts';
import type { States } from './states.ts';

export interface AgentJobsDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly config: Live<CronConfig>;
  readonly agents: Pick<AgentsApi, 'find' | 'list'>;
  readonly states: States;
  /** Called when jobs may have become due. */
  readonly poke: () => void;
}

/** Creates the built-in jobs of each agent, and removes the jobs of deleted agents. */
export class AgentJobs implements AsyncDisposable {
  readonly #deps: AgentJobsDeps;
  /** Agents whose built-in jobs exist. */
  readonly #known: Set<string>;
  /** Work outside of any call, one after the other. */
  #queue: Promise<unknown> = Promise.resolve();

  constructor(deps: AgentJobsDeps) {
    this.#deps = deps;
    this.#known = new Set(deps.agents.list().map(({ id }) => id));
  }

  /** Stores the built-in jobs that these agents should have. */
  async restore(agentIds: readonly string[]): Promise<void> {
    const { db, clock, config } = this.#deps;
    const nowMs = clock.now();
    const wanted = agentIds.flatMap((agentId) => builtInJobs(agentId, config.current, nowMs));
    await db.write(reconcileBuiltIns, { wanted, agentIds, seed: newId('cs'), atMs: nowMs });
  }

  /** Call when an agent was created, changed or deleted. */
  agentChanged(agentId: string): void {
    const { db, log, agents, states, poke } = this.#deps;
    const isThere = agents.find(agentId) !== undefined;
    if (isThere === this.#known.has(agentId)) return;
    if (isThere) this.#known.add(agentId);
    else this.#known.delete(agentId);
    this.#queue = this.#queue
      .then(async () => {
        if (isThere) return this.restore([agentId]);
        await db.write(removeAgentJobs, { agentId });
        states.forget(agentId);
      })
      .then(poke)
      .catch((error: unknown) => log.error({ err: error, agentId }, 'Failed to reconcile the jobs of an agent'));
  }

  /** Waits for queued changes. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#queue;
  }
}
