import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { Log } from '../../../../kernel/log.ts';
import { countUses, type UseCount } from './life-store.ts';

/** How long counts are collected, and for how many memories: a turn never pays for a write. */
const waitMs = 5_000;
const maxWaiting = 2_000;
/** Rows of one write. */
const perWrite = 200;

export interface UseCounter extends AsyncDisposable {
  used(agentId: string, ids: readonly string[]): void;
  failed(agentId: string, ids: readonly string[]): void;
  /** Writes pending counts. */
  flush(): Promise<void>;
}

/** Counts how often memories are recalled and how often the turn then fails, in memory first and in batches on disk. */
export function createUseCounter(deps: { readonly db: Db; readonly bus: EventBus; readonly clock: Clock; readonly log: Log }): UseCounter {
  const { db, bus, clock, log } = deps;
  let waiting = new Map<string, UseCount>();
  let cancel: (() => void) | undefined;
  let writing: Promise<void> = Promise.resolve();

  function count(agentId: string, ids: readonly string[], what: 'uses' | 'failures'): void {
    const atMs = clock.now();
    for (const id of ids) {
      const before = waiting.get(id) ?? { id, agentId, uses: 0, failures: 0, atMs };
      waiting.set(id, { ...before, [what]: before[what] + 1, atMs });
    }
    if (waiting.size >= maxWaiting) void flush();
    else cancel ??= clock.after(waitMs, () => void flush());
  }

  function flush(): Promise<void> {
    cancel?.();
    cancel = undefined;
    if (waiting.size === 0) return writing;
    const counts = [...waiting.values()];
    waiting = new Map();
    return (writing = writing.then(() => write(counts)));
  }

  async function write(counts: readonly UseCount[]): Promise<void> {
    try {
      const failedOf = new Map<string, number>();
      for (let from = 0; from < counts.length; from += perWrite) {
        const batch = counts.slice(from, from + perWrite);
        const present = new Set(await db.write(countUses, { counts: batch }));
        for (const { id, agentId, failures } of batch) if (failures > 0 && present.has(id)) failedOf.set(agentId, (failedOf.get(agentId) ?? 0) + 1);
      }
      for (const [agentId, failed] of failedOf) bus.emit('learning:memory_failure_attributed', { agentId, count: failed, timestamp: clock.now() });
    } catch (error) {
      log.warn({ err: error, memories: counts.length }, 'Failed to count uses of memories');
    }
  }

  return {
    used: (agentId, ids) => count(agentId, ids, 'uses'),
    failed: (agentId, ids) => count(agentId, ids, 'failures'),
    flush,
    [Symbol.asyncDispose]: flush,
  };
}
