import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { HeldLease } from '../api.ts';
import { renewLeases } from './lease-store.ts';
import { keepRoots, pruneRoots } from './life-store.ts';
import type { LiveRoots } from './live-roots.ts';

export interface KeepAliveDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly everyMs: number;
  readonly roots: LiveRoots;
  /** Leases of runs whose turns are running, and of scripts. */
  readonly leases: Map<string, HeldLease>;
  /** The leases that are renewed: those of runs. */
  readonly renewed: ReadonlySet<string>;
  readonly leaseUntilMs: () => number;
  /** Returns whether a turn of the root runs here. */
  readonly hasTurn: (rootRunId: string) => boolean;
  readonly keptMs: number;
}

const pruneMs = 60 * 60_000;
const prunedAtOnce = 1_000;

/** Writes heartbeats of roots, renews leases and prunes old rows; costs nothing while nothing is delegated. Returns a function that stops it. */
export function keepAlive(deps: KeepAliveDeps): () => Promise<void> {
  const { db, clock, log, roots, leases } = deps;
  let isEnded = false;
  let cancel = () => {};
  let beating: Promise<void> = Promise.resolve();
  let prunedAtMs = clock.now();

  async function beat(): Promise<void> {
    const atMs = clock.now();
    const expiresAtMs = deps.leaseUntilMs();
    const ids = [...leases.keys()].filter((id) => deps.renewed.has(id));
    if (ids.length > 0) {
      await db.write(renewLeases, { ids, expiresAtMs });
      for (const id of ids) {
        const lease = leases.get(id);
        if (lease !== undefined) leases.set(id, { ...lease, expiresAtMs });
      }
    }
    const ageNowMs = clock.ageNow();
    for (const [id, lease] of leases) if (lease.expiresAtMs <= ageNowMs) leases.delete(id);
    const tracked = roots.ids();
    if (tracked.length > 0) {
      const spent = tracked.flatMap((id) => {
        const sums = roots.spent(id);
        return sums === undefined ? [] : [{ id, tokens: sums.tokens, nano: sums.nano, activeMs: roots.activeMs(id), unpriced: sums.unpriced }];
      });
      const active = new Set(await db.write(keepRoots, { atMs, spent }));
      for (const id of tracked) if (!active.has(id) && !deps.hasTurn(id)) roots.forget(id);
    }
    if (atMs - prunedAtMs < pruneMs) return;
    const pruned = await db.write(pruneRoots, { beforeMs: clock.ageNow() - deps.keptMs, limit: prunedAtOnce });
    if (pruned < prunedAtOnce) prunedAtMs = atMs;
  }

  function later(): void {
    cancel = clock.after(deps.everyMs, () => {
      beating = beat()
        .catch((error: unknown) => log.error({ err: error }, 'Failed to write heartbeats of root runs'))
        .then(() => {
          if (!isEnded) later();
        });
    });
  }

  later();
  return async () => {
    isEnded = true;
    cancel();
    await beating;
    // Includes what was spent since the last heartbeat.
    await beat().catch((error: unknown) => log.error({ err: error }, 'Failed to write the latest spending of root runs'));
  };
}
