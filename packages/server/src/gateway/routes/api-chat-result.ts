import type { ApiChatResult } from '@gatehouse/contract';
import type { KeptOutcome } from '../../features/conversations/receipts/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import { toPublicFailure } from '../../runtime/turn-failure.ts';

/** Returns the response of `/api/chat`, which is also the data of `done`. */
export function toChatResult({ text, tokensUsed, costUsd, finishReason, sessionKey, conversationRef, traceId, failure }: KeptOutcome): ApiChatResult {
  return {
    response: text,
    tokensUsed,
    ...(costUsd !== undefined && { costUsd }),
    finishReason,
    sessionKey,
    conversationRef,
    traceId,
    ...(failure !== undefined && { failure: toPublicFailure(failure) }),
  };
}

/** Returns the error of a turn for a client that got nothing of its answer, for owners with its cause; undefined when an empty answer is correct. */
export function failureOf({ finishReason, failure }: KeptOutcome, forOwner = false): AppError | undefined {
  if (failure === undefined) return undefined;
  const { kind, retryAfterMs, cause } = failure;
  const isSaid = cause === undefined || failure.message.includes(cause);
  const message = forOwner && !isSaid ? `${failure.message}: ${cause}` : failure.message;
  const retry = retryAfterMs === undefined ? {} : { retryAfterMs };
  switch (finishReason) {
    case 'budget_exceeded':
      return new AppError('rate_limited', message, retry);
    case 'context_exhausted':
      return new AppError('invalid_params', message, { param: 'message' });
    case 'provider_degraded':
      return new AppError(kind === 'rate_limit' ? 'rate_limited' : 'unavailable', message, retry);
    case 'circuit_open':
    case 'aborted':
      return new AppError('unavailable', message, retry);
    case 'timeout':
      return new AppError('timeout', message, retry);
    case 'error':
      return new AppError('internal', message, retry);
    default:
      return undefined;
  }
}

/** Whether a turn that failed after some text is an early end, which the client may keep, rather than a fault. */
export function endedEarly({ finishReason }: KeptOutcome): boolean {
  return finishReason === 'budget_exceeded' || finishReason === 'context_exhausted';
}
