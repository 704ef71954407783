import type { TurnOutcome } from '../../features/turns/api.ts';
import { AppError } from '../../kernel/app-error.ts';

/** What a turn that did not do its work looks like to a client that has seen nothing of it (decisions §3, failed turns); `param` is the field that holds the conversation. */
export function failureOf({ finishReason, failure }: TurnOutcome, param: 'messages' | 'input'): AppError | undefined {
  const retry = failure?.retryAfterMs === undefined ? {} : { retryAfterMs: failure.retryAfterMs };
  if (finishReason === 'budget_exceeded') return new AppError('rate_limited', failure?.message ?? 'The budget is used up', retry);
  if (finishReason === 'context_exhausted')
    return new AppError('invalid_params', failure?.message ?? 'The conversation does not fit into the context of the model', { param });
  if (finishReason === 'aborted') return new AppError('unavailable', failure?.message ?? 'The turn was aborted', retry);
  if (finishReason !== 'error' && finishReason !== 'circuit_open' && finishReason !== 'provider_degraded' && finishReason !== 'timeout')
    return undefined;
  if (failure?.kind === 'rate_limit') return new AppError('rate_limited', failure.message, retry);
  return new AppError('internal', failure?.message ?? 'The turn failed', retry);
}

/** A budget or a context that ran out after some text is an early end like any other; a fault after some text must be seen as one. */
export function isEarlyEnd({ finishReason }: TurnOutcome): boolean {
  return finishReason === 'budget_exceeded' || finishReason === 'context_exhausted';
}
