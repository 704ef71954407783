import type { Identity } from '../../../kernel/call-context.ts';

export interface TokensApi {
  /** Finds a secret by its digest; undefined when unknown, expired or revoked. Takes the same time for every wrong secret. */
  authenticate(secret: string): Identity | undefined;
  /** Returns the current identity, or undefined when its token is gone; read again at each call of a socket. */
  current(tokenId: string): Identity | undefined;
  /** Called at once when a token is revoked, rotated or expires: its sockets and streams are closed. */
  onRevoked(listener: (tokenId: string) => void): () => void;
}
