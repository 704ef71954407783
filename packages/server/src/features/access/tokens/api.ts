import type { Identity } from '../../../kernel/call-context.ts';

export interface TokensApi {
  /** Looks a secret up by its digest; undefined when unknown, expired or revoked. Time does not depend on how much of it is right. */
  authenticate(secret: string): Identity | undefined;
  /** The identity as it is now, or undefined when its token is gone; read again at each call of a socket. */
  current(tokenId: string): Identity | undefined;
  /** Told at once when a token is revoked, rotated or expires: its sockets and streams are closed. */
  onRevoked(listener: (tokenId: string) => void): () => void;
}
