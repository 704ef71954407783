import { ModelError, type ModelResult, type ModelUsage } from '../model.ts';

/** Returns the error with what was received before it; `partial` only when there was text, which the sink already has. */
export function withPartial(error: ModelError, received: ModelResult): ModelError {
  return withUsage(error, received.usage, received.text === '' ? undefined : received);
}

/** Returns the error with what the call used. */
export function withUsage(error: ModelError, usage: ModelUsage, partial?: ModelResult): ModelError {
  return new ModelError(error.kind, error.message, {
    ...(error.status === undefined ? {} : { status: error.status }),
    ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
    ...(error.possibly === undefined ? {} : { possibly: error.possibly }),
    ...(error.cause === undefined ? {} : { cause: error.cause }),
    ...(partial === undefined ? {} : { partial }),
    usage,
  });
}
