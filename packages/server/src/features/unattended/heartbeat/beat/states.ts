import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Log } from '../../../../kernel/log.ts';
import { forgetHeartbeat, type HeartbeatStateRow, keepState } from '../store.ts';
import { longestBackoffMs, newState } from './health.ts';

/** State of each agent's heartbeat, cached in memory. */
export class BeatStates {
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #states = new Map<string, HeartbeatStateRow>();

  constructor({ db, clock, log }: { readonly db: Db; readonly clock: Clock; readonly log: Log }) {
    this.#db = db;
    this.#clock = clock;
    this.#log = log;
  }

  of(agentId: string): HeartbeatStateRow {
    return this.#states.get(agentId) ?? newState(agentId);
  }

  all(): Iterable<HeartbeatStateRow> {
    return this.#states.values();
  }

  /** Caches a state that is stored elsewhere. */
  set(state: HeartbeatStateRow): void {
    this.#states.set(state.agentId, state);
  }

  /** Caches and stores a state. */
  keep(state: HeartbeatStateRow): void {
    this.set(state);
    const { agentId } = state;
    void this.#db.write(keepState, state).catch((error: unknown) => this.#log.error({ agentId, err: error }, 'Failed to store heartbeat state'));
  }

  /** Deletes everything stored for an agent. */
  forget(agentId: string): void {
    this.#states.delete(agentId);
    void this.#db
      .write(forgetHeartbeat, { agentId })
      .catch((error: unknown) => this.#log.error({ agentId, err: error }, 'Failed to delete a heartbeat'));
  }

  /** Returns null when the backoff is over, or too far ahead because the clock stepped back since. */
  backoffUntil(agentId: string): number | null {
    const { backoffUntilMs } = this.of(agentId);
    const now = this.#clock.now();
    return backoffUntilMs !== null && backoffUntilMs > now && backoffUntilMs <= now + longestBackoffMs ? backoffUntilMs : null;
  }
}
