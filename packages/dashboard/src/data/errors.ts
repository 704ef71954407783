import { GatehouseError } from '@gatehouse/client';
import { duration } from './format.ts';

/** What to show of a failure: one sentence, and what helps to find it in the log. */
export interface ShownError {
  readonly message: string;
  readonly details: readonly string[];
  readonly requestId: string | undefined;
}

export function describeError(error: unknown): ShownError {
  if (!(error instanceof GatehouseError))
    return { message: error instanceof Error ? error.message : String(error), details: [], requestId: undefined };
  return {
    message: messageOf(error),
    details: error.issues
      .filter((issue) => issue.message !== error.message)
      .map((issue) => (issue.path === '' ? issue.message : `${issue.path}: ${issue.message}`)),
    requestId: error.requestId,
  };
}

function messageOf({ code, message, retryAfterMs, cause }: GatehouseError): string {
  // What the browser says of it ("Failed to fetch") tells nobody what to do.
  if (code === 'connection_failed' && cause !== undefined)
    return 'The gateway does not answer. It may be stopped, or the connection to it is broken.';
  if (code === 'rate_limited' && retryAfterMs !== undefined)
    return `${message.replace(/\.?$/, '.')} Try again in ${duration(Math.ceil(retryAfterMs / 1000))}.`;
  return message;
}

/** Nobody answered, or nobody could yet: the same may succeed later. */
export function isConnectionError(error: unknown): boolean {
  return error instanceof GatehouseError && ['connection_failed', 'client_timeout', 'unavailable', 'rate_limited'].includes(error.code);
}

export function isAuthenticationError(error: unknown): boolean {
  return error instanceof GatehouseError && error.code === 'unauthenticated';
}
