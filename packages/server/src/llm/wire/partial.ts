import { ModelError, type ModelResult } from '../model.ts';

/** The same error with what was received before it; `partial` only when there was text, which the sink has by then. */
export function withPartial(error: ModelError, received: ModelResult): ModelError {
  return new ModelError(error.kind, error.message, {
    ...(error.status === undefined ? {} : { status: error.status }),
    ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
    ...(error.cause === undefined ? {} : { cause: error.cause }),
    ...(received.text === '' ? {} : { partial: received }),
    usage: received.usage,
  });
}
