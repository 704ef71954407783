import type { TokenScope } from '@gatehouse/contract';

/** Who is calling: drawn from the server's own record at the edge, never from the request. */
export interface Identity {
  /** Stable owner of conversations and rows, `token:<id>`. */
  readonly principalId: string;
  readonly tokenId: string;
  readonly scopes: readonly TokenScope[];
  /** The only agents that may be reached; all when absent. */
  readonly agents?: readonly string[];
  readonly expiresAt?: number;
}

/** What travels with a call: fixed at the edge, handed down by value. */
export interface CallContext {
  readonly identity: Identity;
  /** 32 hex digits; shared by everything that the call causes. */
  readonly traceId: string;
  readonly requestId: string;
  /** Aborted when the caller is gone. */
  readonly signal: AbortSignal;
  readonly transport: 'http' | 'websocket' | 'process';
  readonly remoteAddress?: string;
}
