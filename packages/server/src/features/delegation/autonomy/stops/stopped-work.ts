import type { PartOfRoot } from '../../../../kernel/call-context.ts';
import type { HeldLease } from '../api.ts';

/** Maximum number of ids of each kind that are known in memory; the rows know all of them. */
export const maxStopped = 10_000;

interface StoppedIds {
  readonly revoked: readonly string[];
  readonly revokedLeases: readonly string[];
  readonly evicted: readonly string[];
}

/** Knows which roots and leases were stopped, for checks of running work. It grows after each commit. */
export class StoppedWork {
  readonly #roots: Set<string>;
  readonly #leases: Set<string>;
  readonly #evicted: Set<string>;

  constructor({ revoked, revokedLeases, evicted }: StoppedIds) {
    this.#roots = new Set(revoked);
    this.#leases = new Set(revokedLeases);
    this.#evicted = new Set(evicted);
  }

  hasRoot(rootRunId: string): boolean {
    return this.#roots.has(rootRunId);
  }

  isEvicted(rootRunId: string): boolean {
    return this.#evicted.has(rootRunId);
  }

  /** Returns whether the root of a turn was stopped or the lease that it holds was revoked. */
  includes({ rootRunId, run }: PartOfRoot): boolean {
    return this.#roots.has(rootRunId) || (run !== undefined && this.#leases.has(run.leaseId));
  }

  includesLease({ id, rootRunId }: Pick<HeldLease, 'id' | 'rootRunId'>): boolean {
    return this.#leases.has(id) || this.#roots.has(rootRunId);
  }

  addRoot(rootRunId: string): void {
    remember(this.#roots, rootRunId);
  }

  addLease(leaseId: string): void {
    remember(this.#leases, leaseId);
  }

  evict(rootRunId: string): void {
    remember(this.#evicted, rootRunId);
  }
}

function remember(ids: Set<string>, id: string): void {
  ids.add(id);
  const [oldest] = ids;
  if (ids.size > maxStopped && oldest !== undefined) ids.delete(oldest);
}
