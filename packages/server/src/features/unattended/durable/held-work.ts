import { AppError } from '../../../kernel/app-error.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import { settledWithin } from '../../../kernel/timers.ts';
import type { WorkClaim, WorkItem } from './api.ts';
import { renewWork } from './store.ts';

export const leaseMs = 60_000;
/** How long aborted handlers may take to end. */
const abortedMs = 6_000;

/** An item that this process runs. */
export interface HeldItem {
  readonly item: WorkItem;
  readonly aborter: AbortController;
  /** The model that the item waits for once this claim has ended. */
  waitsFor?: string;
  /** Whether the item waits until its agent is resumed. */
  waitsForAgent?: boolean;
  /** Settles when the outcome is stored; never rejects. */
  ended: Promise<void>;
}

/** The items that this process runs, and their leases. */
export class HeldWork {
  readonly #db: Db;
  readonly #clock: Clock;
  readonly #items = new Map<string, HeldItem>();

  constructor(db: Db, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  get size(): number {
    return this.#items.size;
  }

  ids(): readonly string[] {
    return [...this.#items.keys()];
  }

  find(id: string): HeldItem | undefined {
    return this.#items.get(id);
  }

  add(item: WorkItem): HeldItem {
    const held: HeldItem = { item, aborter: new AbortController(), ended: Promise.resolve() };
    this.#items.set(item.id, held);
    return held;
  }

  remove({ item }: HeldItem): void {
    this.#items.delete(item.id);
  }

  /** Renews all leases; aborts items whose claims were lost. */
  async renew(): Promise<void> {
    if (this.#items.size === 0) return;
    const claims = [...this.#items.values()].map(({ item }) => claimOf(item));
    const lost = await this.#db.write(renewWork, { claims, leaseUntilMs: this.#clock.now() + leaseMs });
    for (const id of lost) this.#items.get(id)?.aborter.abort(new AppError('conflict', 'Another owner has taken over the work'));
  }

  /** Waits until the running items have ended, at most `ms`. */
  ends(ms: number): Promise<void> {
    return settledWithin(
      this.#clock,
      ms,
      [...this.#items.values()].map(({ ended }) => ended),
    );
  }

  /** Aborts running items. Those that end in time are released; the next start takes over the others. */
  async abort(): Promise<void> {
    for (const { aborter } of this.#items.values()) aborter.abort(new AppError('unavailable', 'The daemon is stopping'));
    await this.ends(abortedMs);
  }
}

export const claimOf = ({ id, owner, fence }: WorkItem): WorkClaim => ({ id, owner, fence });
