import type { CallContext, Identity } from '../../../kernel/call-context.ts';

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

/** Work that acts later with the authority of the token that started it. */
export interface TokenWork {
  readonly tokenId: string;
  readonly principalId: string;
  readonly agentId: string;
  /** Whether it starts again and again until somebody removes it, so that it also must not outlive the token of its author. */
  readonly isRepeated?: boolean;
}

/** Keeps callers from making a wider token act for them: the one check of everything that changes work of another token. */
export interface WorkAuthority {
  /** Whether the caller's token allows everything that the work may do. */
  covers(work: TokenWork, call: CallContext): boolean;
  /** Throws `denied`, naming the field, when the caller's token does not cover the work. */
  assertCovers(work: TokenWork, call: CallContext, param: string): void;
}
