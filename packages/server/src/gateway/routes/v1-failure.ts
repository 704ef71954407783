import type { TurnOutcome } from '../../features/conversations/turns/api.ts';
import { AppError, type ErrorDetails } from '../../kernel/app-error.ts';

/** Returns a failed turn's error for a client that has seen nothing of it (decisions §3, §12); `param` is the field that holds the conversation. */
export function failureOf({ finishReason, failure }: TurnOutcome, param: 'messages' | 'input'): AppError | undefined {
  const retry = failure?.retryAfterMs === undefined ? {} : { retryAfterMs: failure.retryAfterMs };
  const refused = (reason: NonNullable<ErrorDetails['reason']>, fallback: string) =>
    new AppError('invalid_params', failure?.message ?? fallback, { reason, ...(reason !== 'budget_exceeded' && { param }) });
  if (finishReason === 'budget_exceeded') {
    const message = 'The budget is used up';
    // A request that can never fit must not be retried.
    if (failure?.retryAfterMs === undefined) return refused('budget_exceeded', message);
    return new AppError('rate_limited', failure.message, { ...retry, reason: 'budget_exceeded' });
  }
  if (finishReason === 'context_exhausted') return refused('context_length_exceeded', 'The conversation does not fit into the context of the model');
  if (finishReason === 'aborted') return new AppError('unavailable', failure?.message ?? 'The turn was aborted', retry);
  if (finishReason !== 'error' && finishReason !== 'circuit_open' && finishReason !== 'provider_degraded' && finishReason !== 'timeout')
    return undefined;
  if (failure?.kind === 'bad_request' || failure?.kind === 'content_filter') return refused('upstream_rejected', failure.message);
  if (failure?.kind === 'rate_limit') return new AppError('rate_limited', failure.message, retry);
  return new AppError('internal', failure?.message ?? 'The turn failed', retry);
}

/** A budget or context that ran out after some text is an early end like any other; a fault after some text must be reported. */
export function isEarlyEnd({ finishReason }: TurnOutcome): boolean {
  return finishReason === 'budget_exceeded' || finishReason === 'context_exhausted';
}
