import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Log } from '../../../../kernel/log.ts';
import { indexMessages } from './index-store.ts';

/** Time to collect messages for a batch, and the pause between batches. */
const gatherMs = 300;
const pauseMs = 25;
const retryMs = 5_000;
/** Delay after start before indexing what an earlier process left. */
const afterStartMs = 1_000;
/** Limits of one batch, which shares the writer with commits of turns. */
const batch = { maxRows: 200, maxBytes: 262_144 };

/** Maintains the full-text index asynchronously: turns only signal new messages and never wait for it. */
export interface Indexer extends AsyncDisposable {
  /** Signals that messages were stored. */
  notice(): void;
  /** Indexes pending messages for up to `forMs`; used by searches when there are too many to scan. */
  catchUp(forMs: number): Promise<void>;
}

export function createIndexer({ db, clock, log }: { readonly db: Db; readonly clock: Clock; readonly log: Log }): Indexer {
  let cancel: (() => void) | undefined;
  let running: Promise<void> | undefined;
  let closed = false;
  let noticed = true;
  cancel = clock.after(afterStartMs, run);

  function run(): void {
    cancel = undefined;
    noticed = false;
    running = db
      .write(indexMessages, batch)
      .then(
        ({ more }) => (more ? pauseMs : noticed ? gatherMs : undefined),
        (error: unknown) => {
          log.error({ err: error }, 'Failed to index conversation messages; retrying');
          return retryMs;
        },
      )
      .then((waitMs) => {
        running = undefined;
        if (waitMs !== undefined && !closed) cancel = clock.after(waitMs, run);
      });
  }

  return {
    notice() {
      if (noticed || closed) return;
      noticed = true;
      if (running === undefined && cancel === undefined) cancel = clock.after(gatherMs, run);
    },
    async catchUp(forMs) {
      const until = clock.monotonic() + forMs;
      while (!closed && clock.monotonic() < until && (await db.write(indexMessages, batch)).more);
    },
    async [Symbol.asyncDispose]() {
      closed = true;
      cancel?.();
      await running;
    },
  };
}
