import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { WorkItem } from './api.ts';
import { leaseMs } from './held-work.ts';
import type { Kind } from './run-item.ts';
import { claimWork, nextWorkAt } from './store.ts';

/** Longest time between two sweeps, which bounds the cost of a lost hint. */
const sweepMs = 30_000;
const heldCheckMs = 5_000;
export const afterErrorMs = 1_000;

export interface ClaimDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly bootId: string;
  readonly kinds: ReadonlyMap<string, Kind>;
  /** Returns the ids of the items that this process runs. */
  readonly heldIds: () => readonly string[];
  readonly isHeld: () => boolean;
  /** Returns true once nothing more may be claimed. */
  readonly isStopped: () => boolean;
  /** Aborted when claimed items may not start any more; the next start recovers them. */
  readonly stopping: AbortSignal;
  readonly begin: (item: WorkItem) => void;
}

/** Claims and starts due work while slots are free; returns the delay until the next item can be claimed. */
export async function claimDue({ db, clock, bootId, kinds, heldIds, isHeld, isStopped, stopping, begin }: ClaimDeps): Promise<number> {
  for (;;) {
    if (isHeld()) return heldCheckMs;
    const free = [...kinds].flatMap(([kind, { limits, running }]) =>
      running < limits.concurrency ? [{ kind, free: limits.concurrency - running }] : [],
    );
    // The end of a running item triggers the next sweep.
    if (free.length === 0) return sweepMs;
    const next = await db.read(nextWorkAt, { kinds: free.map(({ kind }) => kind), atMs: clock.now() });
    const atMs = clock.now();
    if (isStopped() || next === undefined) return sweepMs;
    if (next.atMs > atMs) return Math.min(sweepMs, next.atMs - atMs);
    const due = free.filter(({ kind }) => next.kinds.includes(kind));
    const items = await db.write(claimWork, { owner: bootId, kinds: due, held: heldIds(), leaseUntilMs: atMs + leaseMs, atMs });
    if (stopping.aborted) return sweepMs;
    for (const item of items) begin(item);
    // Items held here may have an expired lease that is being renewed, or be due again before their handler has returned.
    if (items.length === 0) return afterErrorMs;
  }
}
