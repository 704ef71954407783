import { t } from '../language.ts';
import { GatehouseError } from '@gatehouse/client';
import { duration } from './format.ts';

/** A failure as it is shown: one sentence, and the ids that find it in the log. */
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
  // The browser's own message ("Failed to fetch") doesn't help the user.
  if (code === 'connection_failed' && cause !== undefined)
    return t('The gateway does not respond. It may be stopped, or the connection to it is broken.');
  if ((code === 'rate_limited' || code === 'unavailable') && retryAfterMs !== undefined && !/retry in|try again/i.test(message))
    return t('{replace} Try again in {retryAfter}.', { replace: message.replace(/\.?$/, '.'), retryAfter: duration(Math.ceil(retryAfterMs / 1000)) });
  return message;
}

/** True when the gateway didn't answer or wasn't ready, so that a retry may succeed. */
export function isConnectionError(error: unknown): boolean {
  return error instanceof GatehouseError && ['connection_failed', 'client_timeout', 'unavailable', 'rate_limited'].includes(error.code);
}

export function isAuthenticationError(error: unknown): boolean {
  return error instanceof GatehouseError && error.code === 'unauthenticated';
}

/** True when the limit of requests was used up; the server says when it frees. */
export function isRateLimited(error: unknown): error is GatehouseError & { readonly retryAfterMs: number } {
  return error instanceof GatehouseError && error.code === 'rate_limited' && error.retryAfterMs !== undefined;
}

export function isNotFound(error: unknown): boolean {
  return error instanceof GatehouseError && error.code === 'not_found';
}

export function isPreconditionFailed(error: unknown): boolean {
  return error instanceof GatehouseError && error.code === 'precondition_failed';
}
