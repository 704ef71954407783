import type { JsonFragment } from '../../../kernel/json-fragment.ts';
import type { CallContext } from '../../../kernel/call-context.ts';
import type { OwnersFailure } from '../../../runtime/turn-failure.ts';
import type { TurnOutcome, TurnRequest } from '../turns/api.ts';

/** The record of a caller's `Idempotency-Key`, kept for 24 h. `key` is unique per principal. */
export interface ReceiptRow {
  readonly principalId: string;
  readonly key: string;
  /** Digest of the first request with the key. */
  readonly digest: string;
  readonly conversationRef: string;
  /** `running`: the turn has done nothing that must not be repeated; `opened`: it may have, so that a crash leaves an unknown outcome. */
  readonly state: 'running' | 'opened' | 'ended';
  /** The boot that runs the turn. */
  readonly bootId: string;
  /** JSON of the answer. Null while the turn runs, and once the conversation was deleted. */
  readonly outcomeJson: string | null;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

/** The stored part of a turn's outcome, enough to answer its request again. */
export type KeptOutcome = Pick<TurnOutcome, 'finishReason' | 'text' | 'tokensUsed' | 'conversationRef' | 'sessionKey' | 'traceId'> & {
  /** Absent in a receipt that an earlier version stored. */
  readonly costUsd?: TurnOutcome['costUsd'];
  /** The failure, without the provider's error message. */
  readonly failure?: OwnersFailure;
};

/** A turn as seen by one of the requests under its key. */
export interface KeyedTurn {
  /**
   * Resolves with the text streamed since the last call, once there is some; undefined when the turn has ended or the
   * caller is gone.
   */
  next(): Promise<KeyedText | undefined>;
  /** Rejects with the `AppError` of a turn that did not start, such as `conflict` for another body under the key. */
  readonly outcome: Promise<KeptOutcome>;
}

export interface KeyedText {
  /** Number of the first fragment, counted from 1 within a turn. */
  readonly firstId: number;
  /** Texts, escaped as in JSON string literals without the quotes. */
  readonly fragments: readonly JsonFragment[];
  /** True when text is missing between these fragments and the previous ones of this reader or of the continued request. */
  readonly gap: boolean;
}

export interface ReceiptsApi {
  /**
   * Runs the turn, attaches to the one running under the key, or finds the ended one. `after` is the number of the last
   * fragment that the caller already has. Throws `conflict` for another request under the key, and `rate_limited` when
   * too many are running. The caller's signal only ends its own reading.
   */
  execute(keyed: { readonly key: string; readonly after?: number | undefined }, request: TurnRequest, call: CallContext): Promise<KeyedTurn>;
}
