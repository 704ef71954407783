import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Log } from '../../../../kernel/log.ts';
import { repeat } from '../../../../kernel/timers.ts';
import type { Leases } from './leases.ts';
import { keepRoots, pruneRoots } from './life-store.ts';
import type { LiveRoots } from './live-roots.ts';

export interface KeepAliveDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly everyMs: number;
  readonly roots: LiveRoots;
  readonly leases: Pick<Leases, 'renew'>;
  /** Returns whether a turn of the root runs here. */
  readonly hasTurn: (rootRunId: string) => boolean;
  readonly keptMs: number;
}

const pruneMs = 60 * 60_000;
const prunedAtOnce = 1_000;

/** Writes heartbeats of roots, renews leases and prunes old rows; costs nothing while nothing is delegated. */
export function keepAlive(deps: KeepAliveDeps): AsyncDisposable {
  const { db, clock, log, roots, leases } = deps;
  let prunedAtMs = clock.now();

  async function beat(): Promise<void> {
    const atMs = clock.now();
    await leases.renew();
    const tracked = roots.ids();
    if (tracked.length > 0) {
      const spent = tracked.flatMap((id) => {
        const sums = roots.spent(id);
        return sums === undefined
          ? []
          : [{ id, tokens: sums.tokens, nano: sums.nano, activeMs: Math.round(roots.activeMs(id)), unpriced: sums.unpriced }];
      });
      const active = new Set(await db.write(keepRoots, { atMs, spent }));
      for (const id of tracked) if (!active.has(id) && !deps.hasTurn(id)) roots.forget(id);
    }
    if (atMs - prunedAtMs < pruneMs) return;
    const pruned = await db.write(pruneRoots, { beforeMs: clock.ageNow() - deps.keptMs, limit: prunedAtOnce });
    if (pruned < prunedAtOnce) prunedAtMs = atMs;
  }

  const onError = (error: unknown) => log.error({ err: error }, 'Failed to write heartbeats of root runs');
  const beating = repeat({ clock, everyMs: deps.everyMs, run: beat, onError });
  return {
    async [Symbol.asyncDispose]() {
      await beating[Symbol.asyncDispose]();
      // Includes what was spent since the last heartbeat.
      await beat().catch((error: unknown) => log.error({ err: error }, 'Failed to write the latest spending of root runs'));
    },
  };
}
