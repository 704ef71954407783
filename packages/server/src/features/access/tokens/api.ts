import type { Identity } from '../../../kernel/call-context.ts';

/** A limit of requests; `name` is its key in the configuration. */
export interface RequestLimit {
  readonly name: string;
  readonly limit: { readonly maxRequests: number; readonly windowMs: number };
}

export interface TokensApi {
  /** Finds a secret by its digest; undefined when unknown, expired or revoked. Takes the same time for every wrong secret. */
  authenticate(secret: string): Identity | undefined;
  /** Returns the current identity, or undefined when its token is gone; read again at each call of a socket. */
  current(tokenId: string): Identity | undefined;
  /** Called at once when a token is revoked, rotated or expires: its sockets and streams are closed. */
  onRevoked(listener: (tokenId: string, owner: Pick<Identity, 'principalId' | 'person'>) => void): () => void;
}
