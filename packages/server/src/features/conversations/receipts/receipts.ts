import { FinishReason, TokensUsed } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import { parseJson } from '../../../kernel/json.ts';
import type { Log } from '../../../kernel/log.ts';
import { toPublicFailure } from '../../../runtime/turn-failure.ts';
import type { TurnOutcome, TurnRequest, TurnsApi } from '../turns/api.ts';
import type { KeptOutcome, ReceiptRow, ReceiptsApi } from './api.ts';
import { digestOf } from './digest.ts';
import { KeyedRun, type TextBudget } from './run.ts';
import { findReceipt, pruneReceipts } from './store.ts';

const keptMs = 24 * 3_600_000;
const pruneMs = 3_600_000;
/** How long a turn without readers keeps running. */
const lingerMs = 30_000;
/** How long aborted turns may take to end. */
const abortedMs = 1_000;
const maxRunning = 2048;
const maxRunningPerPrincipal = 256;

const Kept = z.strictObject({
  finishReason: FinishReason,
  text: z.string(),
  tokensUsed: TokensUsed,
  failure: z.strictObject({ message: z.string(), kind: z.string(), retryAfterMs: z.number().exactOptional() }).exactOptional(),
  conversationRef: z.string(),
  sessionKey: z.string(),
  traceId: z.string(),
});

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
export function createReceipts(deps: { readonly db: Db; readonly clock: Clock; readonly log: Log; readonly execute: TurnsApi['execute'] }): Receipts {
  const { db, clock, log } = deps;
  const running = new Map<string, Running>();
  const texts: TextBudget = { used: 0 };
  let cancelPrune = () => {};
  let pruning = prune();

  async function prune(): Promise<void> {
    cancelPrune = clock.after(pruneMs, () => void (pruning = prune()));
    try {
      await db.write(pruneReceipts, { atMs: clock.ageNow() });
    } catch (error) {
      log.warn({ err: error }, 'Failed to delete expired receipts');
    }
  }

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
    const entry: Running = { run, principalId, aborter, ended: Promise.resolve() };
    running.set(id, entry);
    entry.ended = work();
    return run;
  }

  /** Returns the stored outcome of the key, or runs the turn. */
  async function outcomeOf(
    run: KeyedRun,
    about: Pick<ReceiptRow, 'principalId' | 'key' | 'digest'>,
    request: TurnRequest,
    call: CallContext,
  ): Promise<KeptOutcome> {
    const found = await db.read(findReceipt, { principalId: about.principalId, key: about.key, atMs: clock.ageNow() });
    if (found !== undefined) {
      if (found.digest !== about.digest) throw otherRequest();
      if (found.outcomeJson === null)
        throw new AppError(
          'conflict',
          'The outcome of the turn under this Idempotency-Key is unknown: the server went down while it ran, or its conversation was deleted',
          {
            param: 'Idempotency-Key',
          },
        );
      run.admit(true);
      return Kept.parse(parseJson(found.outcomeJson));
    }
    run.admit(true);
    const row = (conversationRef: string, outcomeJson: string | null): ReceiptRow => {
      const createdAtMs = clock.now();
      return { ...about, conversationRef, outcomeJson, createdAtMs, expiresAtMs: createdAtMs + keptMs };
    };
    let opened = false;
    const outcome = await deps.execute(
      {
        ...request,
        alongside: {
          opened({ conversationRef }) {
            opened = true;
            return { receipt: row(conversationRef, null) };
          },
          // A turn without effect that ran no run-once operation is not an outcome, so the key may be reused.
          ended: (end) => (hadNoEffect(end) && !opened ? {} : { receipt: row(end.conversationRef, JSON.stringify(kept(end))) }),
        },
      },
      call,
      run.sink,
    );
    return kept(outcome);
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
      cancelPrune();
      const open = [...running.values()];
      for (const { aborter } of open) aborter.abort(new AppError('unavailable', 'The daemon is stopping'));
      const waited = Promise.withResolvers<void>();
      const cancel = clock.after(abortedMs, waited.resolve);
      await Promise.race([Promise.all([pruning, ...open.map(({ ended }) => ended)]), waited.promise]);
      cancel();
    },
  };
}

/** Returns whether the turn was aborted or rejected temporarily, so that the client may retry with the same key. */
function hadNoEffect({ finishReason, text }: TurnOutcome): boolean {
  return finishReason === 'aborted' || (text === '' && ['budget_exceeded', 'circuit_open', 'provider_degraded'].includes(finishReason));
}

function otherRequest(): AppError {
  return new AppError('conflict', 'The Idempotency-Key was used with another request', { param: 'Idempotency-Key' });
}

function kept({ finishReason, text, tokensUsed, failure, conversationRef, sessionKey, traceId }: TurnOutcome): KeptOutcome {
  return {
    finishReason,
    text,
    tokensUsed,
    conversationRef,
    sessionKey,
    traceId,
    ...(failure !== undefined && { failure: toPublicFailure(failure) }),
  };
}
