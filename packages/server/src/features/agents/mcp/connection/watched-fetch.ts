import { AppError } from '../../../../kernel/app-error.ts';
import { AuthorizationNeeded, ScopeNeeded } from '../authorization/needed.ts';
import type { OnLost } from './connection.ts';

type Fetch = (target: string | URL, init?: RequestInit) => Promise<Response>;

export interface WatchedFetch {
  readonly fetch: Fetch;
  /** Why the last request failed; undefined after an answer. */
  failure(): AppError | undefined;
}

/** Consecutive failures after which a server counts as lost. */
export const maxFailures = 3;

/** Watches the requests to one server: reports it as lost after consecutive failures, or when it no longer knows its session. */
export function watchFetch(inner: Fetch, onLost: OnLost): WatchedFetch {
  let failures = 0;
  let failure: AppError | undefined;

  function failed(reason: string): void {
    failures += 1;
    if (failures >= maxFailures) onLost(reason);
  }

  return {
    failure: () => failure,
    async fetch(target, init) {
      let answer: Response;
      try {
        answer = await inner(target, init);
      } catch (error) {
        if (init?.signal?.aborted === true) throw error;
        failure = error instanceof AppError ? error : new AppError('unavailable', 'The server cannot be reached', { cause: error });
        if (failure instanceof AuthorizationNeeded) onLost(failure.message, failure);
        // It answered, and other requests still work.
        else if (!(failure instanceof ScopeNeeded)) failed(failure.message);
        throw failure;
      }
      const inSession = new Headers(init?.headers).has('mcp-session-id');
      if (answer.status === 404 && init?.method === 'POST' && inSession) onLost('The server no longer knows the session');
      if (answer.status >= 500) failed(`The server answers with status ${answer.status}`);
      else {
        failures = 0;
        failure = undefined;
      }
      return answer;
    },
  };
}
