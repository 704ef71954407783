import type { ModelErrorKind } from '../llm/model.ts';

/** Failures that the turn itself decides, in addition to those of a model call. */
export const ownFailureKinds = [
  'circuit_open',
  'budget_exceeded',
  'max_steps',
  'context_exhausted',
  'context_loop',
  'output_starved',
  'content_filter',
  'denial_breaker',
  'revoked',
  'timeout',
  'aborted',
  'error',
  'unknown',
  'too_many_resumes',
] as const;

export type FailureKind = ModelErrorKind | (typeof ownFailureKinds)[number];

/** Why a turn did not do its work. Decided once, in `turn-end.ts`: there is no other list of kinds. */
export interface TurnFailure {
  readonly kind: FailureKind;
  /** Message for clients. */
  readonly message: string;
  /** The model provider is at fault, and the same turn may succeed later without any change. */
  readonly transient: boolean;
  readonly retryAfterMs?: number;
  /** The provider's own message, secrets redacted: for owners (`*`, `admin`) only. */
  readonly cause?: string;
}

/** The part of a failure that every client may see. */
export type PublicFailure = Pick<TurnFailure, 'message' | 'retryAfterMs'> & { readonly kind: string };

/** The same with the provider's own message, for owners. */
export type OwnersFailure = PublicFailure & Pick<TurnFailure, 'cause'>;

/** Returns the failure as a client may see it: owners (`*`, `admin`) also see the cause. */
export function toFailureFor(failure: OwnersFailure, forOwner: boolean): OwnersFailure {
  return { ...toPublicFailure(failure), ...(forOwner && failure.cause !== undefined && { cause: failure.cause }) };
}

export function toPublicFailure({ kind, message, retryAfterMs }: PublicFailure): PublicFailure {
  return { kind, message, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}
