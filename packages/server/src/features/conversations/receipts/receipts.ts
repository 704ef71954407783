import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Log } from '../../../kernel/log.ts';
import { repeat, settledWithin } from '../../../kernel/timers.ts';
import type { TurnRequest, TurnsApi } from '../turns/api.ts';
import type { ReceiptsApi } from './api.ts';
import { digestOf } from './digest.ts';
import { createKeyedOutcome, otherRequest } from './keyed-outcome.ts';
import { KeyedRun, type TextBudget } from './run.ts';
import { pruneReceipts } from './store.ts';

const pruneMs = 3_600_000;
/** How long a turn without readers keeps running. */
const lingerMs = 30_000;
/** How long aborted turns may take to end. */
const abortedMs = 1_000;
const maxRunning = 2048;
const maxRunningPerPrincipal = 256;

interface Receipts extends AsyncDisposable {
  readonly api: ReceiptsApi;
}

interface Running {
  readonly run: KeyedRun;
  readonly principalId: string;
  readonly aborter: AbortController;
  ended: Promise<void>;
}

/** Runs turns that clients may repeat with an `Idempotency-Key` (reliability.md §4.1, decisions §4). */
export function createReceipts(deps: {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  /** Id of this run of the daemon. */
  readonly bootId: string;
  readonly execute: TurnsApi['execute'];
}): Receipts {
  const { db, clock, log } = deps;
  const outcomeOf = createKeyedOutcome(deps);
  const running = new Map<string, Running>();
  const texts: TextBudget = { used: 0 };
  const pruning = repeat({
    clock,
    everyMs: pruneMs,
    firstMs: 0,
    run: () => db.write(pruneReceipts, { atMs: clock.ageNow() }),
    onError: (error) => log.warn({ err: error }, 'Failed to delete expired receipts'),
  });

  function refuseTooMany(principalId: string): void {
    let own = 0;
    for (const other of running.values()) if (other.principalId === principalId) own += 1;
    if (running.size < maxRunning && own < maxRunningPerPrincipal) return;
    throw new AppError('rate_limited', 'Too many concurrent turns with an Idempotency-Key', { retryAfterMs: 1_000 });
  }

  function begin(id: string, key: string, digest: string, request: TurnRequest, call: CallContext): KeyedRun {
    const { principalId } = call.identity;
    refuseTooMany(principalId);
    const aborter = new AbortController();
    let cancel = () => {};
    const run = new KeyedRun(digest, texts, (readers) => {
      cancel();
      if (readers === 0) cancel = clock.after(lingerMs, () => aborter.abort(new AppError('cancelled', 'All readers of the turn have left')));
    });
    const work = async (): Promise<void> => {
      try {
        const outcome = await outcomeOf(run, { principalId, key, digest }, request, { ...call, signal: aborter.signal });
        running.delete(id);
        run.end(outcome);
      } catch (error) {
        running.delete(id);
        run.admit(false);
        run.fail(error);
      }
      cancel();
    };
    // Before its turn is admitted, a stop of all turns of the token does not find it.
    const onEnd = () => {
      const reason: unknown = call.signal.reason;
      if (reason instanceof AppError && reason.code === 'unauthenticated') aborter.abort(reason);
    };
    if (call.signal.aborted) onEnd();
    else call.signal.addEventListener('abort', onEnd, { once: true });
    const entry: Running = { run, principalId, aborter, ended: Promise.resolve() };
    running.set(id, entry);
    entry.ended = work();
    return run;
  }

  return {
    api: {
      async execute({ key, after = 0 }, request, call) {
        // A token whose scopes were reduced since must not get an earlier answer.
        const { scopes, agents } = call.identity;
        const digest = digestOf({ request, scopes, agents });
        const id = `${call.identity.principalId}\n${key}`;
        for (;;) {
          const found = running.get(id)?.run;
          if (found === undefined) return begin(id, key, digest, request, call).read(after, call.signal);
          if (found.digest === digest) return found.read(after, call.signal);
          if (await found.admitted) throw otherRequest();
        }
      },
    },
    async [Symbol.asyncDispose]() {
      const open = [...running.values()];
      for (const { aborter } of open) aborter.abort(new AppError('unavailable', 'The daemon is stopping'));
      await settledWithin(clock, abortedMs, [pruning[Symbol.asyncDispose](), ...open.map(({ ended }) => ended)]);
    },
  };
}
