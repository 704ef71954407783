import type { CallingTurn } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { HeldLease, NewLease } from '../api.ts';
import { parseCaps } from '../guards/profiles.ts';
import type { StoppedWork } from '../stops/stopped-work.ts';
import { beginLease, findBearer, findLease, type LeaseRow, renewLeases } from './lease-store.ts';

interface LeasesDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly leaseMinutes: () => number;
  readonly stopped: StoppedWork;
}

type LeasedRun = NonNullable<CallingTurn['run']>;

/** Knows the leases of runs whose turns are running here. */
export class Leases {
  readonly #deps: LeasesDeps;
  readonly #held = new Map<string, HeldLease>();
  /** Leases of runs that begin as soon as they are accepted. */
  readonly #issued = new Map<string, NewLease>();
  readonly #running = new Set<string>();

  constructor(deps: LeasesDeps) {
    this.#deps = deps;
  }

  /** Returns when a lease issued now expires. */
  untilMs(): number {
    return this.#deps.clock.ageNow() + this.#deps.leaseMinutes() * 60_000;
  }

  /** Announces the lease of a run that begins at once. Returns a function that forgets it. */
  issuing(lease: NewLease): () => void {
    this.#issued.set(lease.id, lease);
    return () => void this.#issued.delete(lease.id);
  }

  /** Returns the lease of a running run, unless it has expired. */
  valid(leaseId: string): HeldLease | undefined {
    const lease = this.#held.get(leaseId);
    return lease === undefined || lease.expiresAtMs <= this.#deps.clock.ageNow() ? undefined : lease;
  }

  async ofBearer(bearerDigest: string): Promise<HeldLease | undefined> {
    return this.#heldBy(await this.#deps.db.read(findBearer, { bearerDigest, atMs: this.#deps.clock.ageNow() }));
  }

  /** Call before the turn of a run. */
  async begin({ leaseId }: LeasedRun): Promise<void> {
    this.#running.add(leaseId);
    const lease = await this.#ofRun(leaseId);
    if (lease !== undefined) this.#held.set(lease.id, lease);
  }

  /** Call after the turn of a run. */
  end({ leaseId }: LeasedRun): void {
    this.#held.delete(leaseId);
    this.#running.delete(leaseId);
  }

  /** Renews the leases of running runs, and forgets those that have expired. */
  async renew(): Promise<void> {
    const { db, clock } = this.#deps;
    const expiresAtMs = this.untilMs();
    const ids = [...this.#held.keys()].filter((id) => this.#running.has(id));
    if (ids.length > 0) {
      await db.write(renewLeases, { ids, expiresAtMs });
      for (const id of ids) {
        const lease = this.#held.get(id);
        if (lease !== undefined) this.#held.set(id, { ...lease, expiresAtMs });
      }
    }
    const nowMs = clock.ageNow();
    for (const [id, lease] of this.#held) if (lease.expiresAtMs <= nowMs) this.#held.delete(id);
  }

  /** Returns the lease of a run. Most were issued a moment ago; only after a long wait is a lease renewed, which costs a commit. */
  async #ofRun(id: string): Promise<HeldLease | undefined> {
    const { db, clock, stopped } = this.#deps;
    const expiresAtMs = this.untilMs();
    const isYoung = (lease: Pick<HeldLease, 'expiresAtMs'>) => lease.expiresAtMs - clock.ageNow() > (expiresAtMs - clock.ageNow()) / 2;
    const fresh = this.#issued.get(id);
    if (fresh !== undefined && isYoung(fresh)) return stopped.includesLease(fresh) ? undefined : fresh;
    const row = await db.read(findLease, { id });
    return this.#heldBy(row === undefined || isYoung(row) ? row : await db.write(beginLease, { id, expiresAtMs }));
  }

  #heldBy(row: LeaseRow | undefined): HeldLease | undefined {
    return row !== undefined && !this.#deps.stopped.includesLease(row) ? { ...row, caps: parseCaps(row.caps) } : undefined;
  }
}
