import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Log } from '../../../../kernel/log.ts';
import { indexMessages } from './index-store.ts';

/** Messages wait this long for company, and a turn that is behind for a batch that runs this long for the next one. */
const gatherMs = 300;
const pauseMs = 25;
const retryMs = 5_000;
/** What was left by an earlier run is taken up when the start is over. */
const afterStartMs = 1_000;
/** Of one batch: it shares the writer with the turns that commit. */
const batch = { maxRows: 200, maxBytes: 262_144 };

/** Keeps the full-text index behind the conversations: turns only say that there is something, and nothing waits for it. */
export interface Indexer extends AsyncDisposable {
  /** Messages were stored. */
  notice(): void;
  /** Indexes what waits, for so long; a search asks for it when there is more than it looks through itself. */
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
          log.error({ err: error }, 'The messages of conversations could not be indexed; it is tried again');
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
