import { isDeepStrictEqual } from 'node:util';
import { AppError } from '../../../kernel/app-error.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Log } from '../../../kernel/log.ts';
import { type KnowledgeSource, placeOf } from './api.ts';
import { createWatchBudget, FolderWatch } from './folder-watch.ts';
import type { createIndexer, Indexed } from './indexer.ts';
import { listSourceSums } from './store.ts';

export interface Wanted {
  readonly agentId: string;
  readonly source: KnowledgeSource;
}

/** `unavailable`: the folder or site is not there now; what was indexed stays. */
export type SourceState = 'waiting' | 'indexing' | 'ready' | 'unavailable' | 'failed';

export interface SourceStatus {
  readonly state: SourceState;
  readonly problem?: string | undefined;
  readonly checkedAtMs?: number | undefined;
  readonly more?: boolean | undefined;
  /** The next comparison; none while it is being indexed. */
  readonly nextCheckAtMs?: number | undefined;
  /** Folders that are compared at intervals only. */
  readonly unwatched?: number | undefined;
}

interface SyncDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly indexer: ReturnType<typeof createIndexer>;
  /** The sources of all agents that are not suspended. */
  readonly wanted: () => readonly Wanted[];
  /** Those of suspended agents as well: their index stays. */
  readonly kept: () => readonly Wanted[];
}

interface Tended {
  readonly source: KnowledgeSource;
  readonly watcher: FolderWatch | undefined;
  status: SourceStatus;
  /** How long the last scan of the folder took. */
  scanMs: number;
  dueMs: number;
  /** Whether it changed while it was indexed. */
  changed: boolean;
}

/** After a notice, others usually follow: a folder is read this much later. */
const settleMs = 1_500;
/** Sites are asked no more often. */
const minSiteMinutes = 60;
const retryMs = 60_000;

/** A large folder in which something always changes is compared a fifth of the time at most. */
const scanShare = 5;
const pauseOf = ({ scanMs }: Tended): number => Math.max(settleMs, scanShare * scanMs);

const keyOf = ({ agentId, source }: Wanted): string => `${agentId}\n${source.name}`;

/**
 * Keeps the index of all sources up to date, one source after the other: at the start, after a notice of the folder, at intervals,
 * because notices may be missing, and when the configuration changes. The rows say what was done, so a restart continues.
 */
export class KnowledgeSync implements AsyncDisposable {
  readonly #deps: SyncDeps;
  readonly #stopping = new AbortController();
  readonly #budget = createWatchBudget();
  readonly #tended = new Map<string, Tended>();
  #working: Promise<void> | undefined;
  /** The source that is being indexed. */
  #current: { readonly wanted: Wanted; readonly stop: AbortController } | undefined;
  #again = false;
  /** When to remove again what could not be removed. */
  #retryDropMs: number | undefined;
  #cancelNext: (() => void) | undefined;

  constructor(deps: SyncDeps) {
    this.#deps = deps;
  }

  statusOf(wanted: Wanted): SourceStatus {
    const tended = this.#tended.get(keyOf(wanted));
    if (tended === undefined) return { state: 'waiting' };
    const { clock } = this.#deps;
    const nextCheckAtMs = tended.dueMs === Infinity ? undefined : Math.round(clock.now() + Math.max(0, tended.dueMs - clock.monotonic()));
    return { ...tended.status, nextCheckAtMs };
  }

  /** Compares with the configuration, and indexes what is due. */
  wake(): void {
    if (this.#stopping.signal.aborted) return;
    if (this.#current !== undefined && !this.#isWanted(this.#current.wanted))
      this.#current.stop.abort(new AppError('cancelled', 'The source changed, or its agent was suspended or deleted'));
    this.#again = true;
    this.#working ??= this.#work();
  }

  /** Indexes sources of an agent now. */
  refresh(agentId: string, source: string | undefined): void {
    for (const one of this.#deps.wanted()) {
      const tended = one.agentId === agentId && (source === undefined || one.source.name === source) ? this.#tended.get(keyOf(one)) : undefined;
      if (tended !== undefined) this.#markDue(tended, 0);
    }
    this.wake();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort(new AppError('cancelled', 'The gateway is stopping'));
    this.#cancelNext?.();
    for (const { watcher } of this.#tended.values()) watcher?.[Symbol.dispose]();
    await this.#working;
  }

  async #work(): Promise<void> {
    while (this.#again && !this.#stopping.signal.aborted) {
      this.#again = false;
      try {
        await this.#pass();
      } catch (error) {
        if (!this.#stopping.signal.aborted) this.#deps.log.warn({ err: error }, 'Failed to compare knowledge sources with the configuration');
      }
    }
    // At once, so that no wake is lost after the last check.
    this.#working = undefined;
    this.#schedule();
  }

  #schedule(): void {
    this.#cancelNext?.();
    this.#cancelNext = undefined;
    const next = Math.min(this.#retryDropMs ?? Infinity, ...[...this.#tended.values()].map(({ dueMs }) => dueMs));
    if (this.#stopping.signal.aborted || next === Infinity) return;
    this.#cancelNext = this.#deps.clock.after(Math.max(0, next - this.#deps.clock.monotonic()), () => this.wake());
  }

  #markDue(tended: Tended, inMs: number): void {
    tended.changed = true;
    tended.dueMs = Math.min(tended.dueMs, this.#deps.clock.monotonic() + inMs);
  }

  async #pass(): Promise<void> {
    const { signal } = this.#stopping;
    const wanted = this.#deps.wanted();
    this.#retend(wanted);
    await this.#dropUnwanted();
    for (const one of wanted) {
      const tended = this.#tended.get(keyOf(one));
      if (tended === undefined || tended.dueMs > this.#deps.clock.monotonic() || !this.#isWanted(one)) continue;
      signal.throwIfAborted();
      await this.#index(one, tended);
    }
  }

  /** Whether the configuration still has a source as it was, and its agent works. */
  #isWanted(wanted: Wanted): boolean {
    return this.#deps.wanted().some((one) => keyOf(one) === keyOf(wanted) && isDeepStrictEqual(one.source, wanted.source));
  }

  /** Watches what is new, and ends what is gone or differs. */
  #retend(wanted: readonly Wanted[]): void {
    const named = new Map(wanted.map((one) => [keyOf(one), one.source]));
    for (const [key, tended] of this.#tended) {
      if (isDeepStrictEqual(named.get(key), tended.source)) continue;
      tended.watcher?.[Symbol.dispose]();
      this.#tended.delete(key);
    }
    for (const one of wanted) {
      const key = keyOf(one);
      if (this.#tended.has(key)) continue;
      const tended: Tended = {
        source: one.source,
        watcher:
          one.source.folder === undefined
            ? undefined
            : new FolderWatch(one.source.folder, this.#budget, () => {
                this.#markDue(tended, pauseOf(tended));
                if (this.#working === undefined) this.#schedule();
              }),
        status: { state: 'waiting' },
        scanMs: 0,
        dueMs: this.#deps.clock.monotonic(),
        changed: false,
      };
      this.#tended.set(key, tended);
    }
  }

  async #dropUnwanted(): Promise<void> {
    const { db, log, indexer, clock } = this.#deps;
    this.#retryDropMs = undefined;
    try {
      const kept = new Set(this.#deps.kept().map(keyOf));
      for (const { agentId, source } of await db.read(listSourceSums, {})) {
        if (kept.has(`${agentId}\n${source}`)) continue;
        await indexer.drop(agentId, source, this.#stopping.signal);
        log.info({ agentId, source }, 'Removed a knowledge source');
      }
    } catch (error) {
      this.#stopping.signal.throwIfAborted();
      this.#retryDropMs = clock.monotonic() + retryMs;
      log.warn({ err: error }, 'Failed to remove knowledge sources that no agent has any more');
    }
  }

  async #watch(tended: Tended, folders: readonly string[]): Promise<void> {
    const watching = await tended.watcher?.keep(folders);
    if (watching === undefined) return;
    // Something may have changed between the scan and the watch.
    if (watching.opened > 0) tended.changed = true;
    tended.status = { ...tended.status, unwatched: watching.unwatched };
  }

  async #index(wanted: Wanted, tended: Tended): Promise<void> {
    const { clock, indexer, log } = this.#deps;
    const { agentId, source } = wanted;
    const everyMs = (source.folder === undefined ? Math.max(source.everyMinutes, minSiteMinutes) : source.everyMinutes) * 60_000;
    tended.changed = false;
    tended.dueMs = Infinity;
    tended.status = { ...tended.status, state: 'indexing' };
    let nextMs = everyMs;
    const stop = new AbortController();
    const signal = AbortSignal.any([this.#stopping.signal, stop.signal]);
    this.#current = { wanted, stop };
    const sinceMs = clock.monotonic();
    try {
      const { changed, removed, more }: Indexed = await indexer.index(agentId, source, signal, async (folders) => {
        tended.scanMs = clock.monotonic() - sinceMs;
        await this.#watch(tended, folders);
      });
      const { unwatched } = tended.status;
      tended.status = { state: 'ready', checkedAtMs: clock.now(), more, unwatched };
      if (changed + removed > 0) log.info({ agentId, source: source.name, changed, removed }, 'Indexed a knowledge source');
    } catch (error) {
      if (signal.aborted) {
        tended.status = { ...tended.status, state: 'waiting' };
        nextMs = 0;
        return;
      }
      nextMs = Math.min(everyMs, retryMs);
      const isAway = error instanceof AppError && error.code !== 'internal';
      const problem = isAway ? error.message : 'The source could not be indexed; the log says why';
      tended.status = {
        state: isAway ? 'unavailable' : 'failed',
        problem,
        checkedAtMs: clock.now(),
        more: tended.status.more,
        unwatched: tended.status.unwatched,
      };
      log.warn({ err: error, agentId, source: source.name, place: placeOf(source) }, 'Failed to index a knowledge source');
    } finally {
      this.#current = undefined;
      // Noticed meanwhile: what was written after it was read is read again.
      tended.dueMs = Math.min(tended.dueMs, clock.monotonic() + nextMs);
      if (tended.changed) tended.dueMs = Math.min(tended.dueMs, clock.monotonic() + pauseOf(tended));
    }
  }
}
