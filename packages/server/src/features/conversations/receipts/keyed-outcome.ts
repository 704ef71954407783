import { FinishReason, TokensUsed, once } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../../kernel/app-error.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import { toCall } from '../../../kernel/db/operation.ts';
import type { Log } from '../../../kernel/log.ts';
import { parseJson } from '../../../kernel/json.ts';
import { toPublicFailure } from '../../../runtime/turn-failure.ts';
import type { TurnOutcome, TurnRequest, TurnsApi } from '../turns/api.ts';
import type { KeptOutcome, ReceiptRow } from './api.ts';
import type { KeyedRun } from './run.ts';
import { beginReceipt, dropReceipt, keepReceipt } from './store.ts';

const keptMs = 24 * 3_600_000;
const retryAfterMs = 1_000;

const Kept = once(() =>
  z.strictObject({
    finishReason: FinishReason,
    text: z.string(),
    tokensUsed: TokensUsed,
    costUsd: z.number().nullable().exactOptional(),
    failure: z.strictObject({ message: z.string(), kind: z.string(), retryAfterMs: z.number().exactOptional() }).exactOptional(),
    conversationRef: z.string(),
    sessionKey: z.string(),
    traceId: z.string(),
  }),
);

export interface KeyedOutcomeDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly bootId: string;
  readonly execute: TurnsApi['execute'];
}

/** Returns the stored outcome of a key, or runs the turn and stores its outcome along with it. */
type KeyedOutcome = (
  run: KeyedRun,
  about: Pick<ReceiptRow, 'principalId' | 'key' | 'digest'>,
  request: TurnRequest,
  call: CallContext,
) => Promise<KeptOutcome>;

export function createKeyedOutcome({ db, clock, log, bootId, execute }: KeyedOutcomeDeps): KeyedOutcome {
  return async (run, about, request, call) => {
    const row = (state: ReceiptRow['state'], conversationRef: string, outcomeJson: string | null): ReceiptRow => {
      const createdAtMs = clock.now();
      return { ...about, conversationRef, state, bootId, outcomeJson, createdAtMs, expiresAtMs: createdAtMs + keptMs };
    };
    const found = await db.write(beginReceipt, { row: row('running', '', null), ageNowMs: clock.ageNow() });
    if (found !== undefined) {
      if (found.digest !== about.digest) throw otherRequest();
      if (found.isElsewhere)
        throw new AppError('unavailable', 'The turn under this Idempotency-Key runs in another daemon; try again later', { retryAfterMs });
      if (found.outcomeJson === null)
        throw new AppError(
          'conflict',
          'The outcome of the turn under this Idempotency-Key is unknown: the server went down while it ran, or its conversation was deleted',
          {
            param: 'Idempotency-Key',
          },
        );
      run.admit(true);
      return Kept().parse(parseJson(found.outcomeJson));
    }
    run.admit(true);
    const { principalId, key } = about;
    let opened = false;
    const turn: TurnRequest = {
      ...request,
      alongside: {
        opened({ conversationRef }) {
          opened = true;
          return [toCall(keepReceipt, row('opened', conversationRef, null))];
        },
        // A turn without effect that ran no run-once operation is not an outcome, so the key may be reused.
        ended: (end) =>
          hadNoEffect(end) && !opened
            ? [toCall(dropReceipt, { principalId, key, bootId })]
            : [toCall(keepReceipt, row('ended', end.conversationRef, JSON.stringify(kept(end))))],
      },
    };
    try {
      return kept(await execute(turn, call, run.sink));
    } catch (error) {
      // Its end was not stored. When this fails too, the next request finds a turn that does not run.
      await db.write(dropReceipt, { principalId, key, bootId }).catch((failure: unknown) => log.warn({ err: failure }, 'Failed to free a key'));
      throw error;
    }
  };
}

/** Returns whether the turn was aborted or rejected temporarily, so that the client may retry with the same key. */
function hadNoEffect({ finishReason, text }: TurnOutcome): boolean {
  return finishReason === 'aborted' || (text === '' && ['budget_exceeded', 'circuit_open', 'provider_degraded'].includes(finishReason));
}

export function otherRequest(): AppError {
  return new AppError('conflict', 'The Idempotency-Key was used with another request', { param: 'Idempotency-Key' });
}

function kept({ finishReason, text, tokensUsed, costUsd, failure, conversationRef, sessionKey, traceId }: TurnOutcome): KeptOutcome {
  return {
    finishReason,
    text,
    tokensUsed,
    costUsd,
    conversationRef,
    sessionKey,
    traceId,
    ...(failure !== undefined && { failure: toPublicFailure(failure) }),
  };
}
