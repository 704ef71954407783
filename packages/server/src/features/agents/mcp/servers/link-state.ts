import type { Connection } from '../connection/connection.ts';

export const maxReconnectAttempts = 5;

export type ServerStatus = 'disconnected' | 'connecting' | 'connected' | 'reconnecting' | 'error' | 'needs_authorization';

interface Common {
  /** Attempts to reconnect since a connection last lasted for a minute. */
  readonly attempt: number;
  /** Why the last connection was lost, or the last attempt failed. */
  readonly error?: string | undefined;
}

/** The connection to a server, as operators see it. */
export type LinkState =
  | ({ readonly status: 'connected'; readonly connection: Connection } & Common)
  | ({ readonly status: Exclude<ServerStatus, 'connected'> } & Common);

export type LinkEvent =
  | { readonly kind: 'requested' | 'opening' | 'steady' | 'retrying' | 'disconnected' }
  | { readonly kind: 'opened'; readonly connection: Connection }
  | { readonly kind: 'failed' | 'lost' | 'unauthorized'; readonly error: string };

export const disconnected: LinkState = { status: 'disconnected', attempt: 0 };

/** Returns the state after an event. */
export function nextState(state: LinkState, event: LinkEvent): LinkState {
  const { attempt, error } = state;
  switch (event.kind) {
    case 'requested':
    case 'steady':
      return { ...state, attempt: 0 };
    case 'opening':
      return { status: attempt === 0 ? 'connecting' : 'reconnecting', attempt, error };
    case 'opened':
      return { status: 'connected', attempt, connection: event.connection };
    case 'failed':
      return { status: 'error', attempt, error: event.error };
    case 'unauthorized':
      return { status: 'needs_authorization', attempt: 0, error: event.error };
    case 'lost':
      return { status: 'reconnecting', attempt, error: event.error };
    case 'retrying':
      return attempt >= maxReconnectAttempts ? { status: 'error', attempt, error } : { status: 'reconnecting', attempt: attempt + 1, error };
    case 'disconnected':
      return disconnected;
  }
}
