import type { Core } from '../../../kernel/core.ts';
import { repeat, sleep } from '../../../kernel/timers.ts';
import type { KeptRecords, RetentionState } from './api.ts';

const dayMs = 86_400_000;
const everyMs = 3_600_000;
/** A start has more important work. */
const firstMs = 600_000;
/** Records of one write: about as much work for the writer as a turn's own write. */
const step = 200;
/** Between two writes; longer when the last one was slow, so that deleting takes a fifth of the writer's time at most. */
const leastPauseMs = 100;
const pauseFactor = 4;
const busyPauseMs = 500;
/** A daemon that is always busy still deletes, slowly. */
const longestBusyMs = 30_000;

export interface RetentionDeps extends Pick<Core, 'clock' | 'log'> {
  readonly kept: readonly KeptRecords[];
  /** Whether turns are running, which the writer should serve first. */
  readonly isBusy: () => boolean;
}

export interface Retention extends AsyncDisposable {
  readonly state: () => Promise<RetentionState>;
  readonly nextAtMs: () => number;
}

/**
 * Deletes old records once an hour, in small steps behind all other work. What is due is only a question of age, so a run that was
 * interrupted is continued by any later one.
 */
export function createRetention({ clock, log, kept, isBusy }: RetentionDeps): Retention {
  const ending = new AbortController();
  const { signal } = ending;
  const deleted = new Map<string, number>();
  let lastAtMs: number | undefined;
  let nextAtMs = clock.now() + firstMs;

  async function untilIdle(): Promise<void> {
    for (let waitedMs = 0; isBusy() && waitedMs < longestBusyMs && !signal.aborted; waitedMs += busyPauseMs) await sleep(clock, busyPauseMs, signal);
  }

  async function prune({ name, days, prune: pruneSome }: KeptRecords): Promise<void> {
    for (let count = step; count >= step;) {
      await untilIdle();
      if (signal.aborted) return;
      const sinceMs = clock.monotonic();
      // The age is asked for each time: the clock may be corrected meanwhile.
      count = await pruneSome({ beforeMs: clock.ageNow() - days() * dayMs, limit: step }, signal);
      deleted.set(name, (deleted.get(name) ?? 0) + count);
      if (count > 0) await sleep(clock, Math.max(leastPauseMs, pauseFactor * (clock.monotonic() - sinceMs)), signal);
    }
  }

  async function pruneAll(): Promise<void> {
    lastAtMs = clock.now();
    const before = new Map(deleted);
    for (const records of kept) {
      if (signal.aborted) return;
      await prune(records).catch((error: unknown) => log.warn({ err: error, records: records.name }, 'Failed to delete old records'));
      const count = (deleted.get(records.name) ?? 0) - (before.get(records.name) ?? 0);
      if (count > 0) log.info({ records: records.name, count, days: records.days() }, 'Deleted old records');
    }
  }

  const running = repeat({
    clock,
    everyMs,
    firstMs,
    run: () => pruneAll().finally(() => (nextAtMs = clock.now() + everyMs)),
    onError: (error) => log.error({ err: error }, 'Failed to delete old records'),
  });

  return {
    nextAtMs: () => nextAtMs,
    async state() {
      const found = await Promise.all(
        kept.map(async ({ name, days, oldest }) => {
          const oldestAtMs = await oldest().catch(() => undefined);
          return { name, days: days(), ...(oldestAtMs !== undefined && { oldestAtMs }), deleted: deleted.get(name) ?? 0 };
        }),
      );
      return { ...(lastAtMs !== undefined && { lastAtMs }), nextAtMs, kept: found };
    },
    async [Symbol.asyncDispose]() {
      ending.abort();
      await running[Symbol.asyncDispose]();
    },
  };
}
