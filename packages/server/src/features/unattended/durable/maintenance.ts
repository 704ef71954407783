import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Log } from '../../../kernel/log.ts';
import { repeat } from '../../../kernel/timers.ts';
import type { HeldWork } from './held-work.ts';
import { pruneWork } from './store.ts';

const renewMs = 20_000;
const firstPruneMs = 1_000;
const pruneMs = 60 * 60_000;
const keptMs = 7 * 24 * 60 * 60_000;
const prunedAtOnce = 1_000;

/** Renews the leases of running items, and deletes items that ended a week ago, until disposed. */
export function startMaintenance(deps: { readonly db: Db; readonly clock: Clock; readonly log: Log; readonly held: HeldWork }): AsyncDisposable {
  const { db, clock, log, held } = deps;
  const jobs = new AsyncDisposableStack();
  jobs.use(repeat({ clock, everyMs: renewMs, run: () => held.renew(), onError: (error) => log.error({ err: error }, 'Failed to renew leases') }));
  jobs.use(
    repeat({
      clock,
      everyMs: pruneMs,
      firstMs: firstPruneMs,
      async run() {
        const pruned = await db.write(pruneWork, { beforeMs: clock.ageNow() - keptMs, limit: prunedAtOnce });
        return pruned === prunedAtOnce ? firstPruneMs : pruneMs;
      },
      onError: (error) => log.warn({ err: error }, 'Failed to delete old work items'),
    }),
  );
  return jobs;
}
