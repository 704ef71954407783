import type { CallContext } from '../../../kernel/call-context.ts';
import type { OwnersFailure } from '../../../runtime/turn-failure.ts';
import type { TurnOutcome, TurnRequest } from '../turns/api.ts';

/** What a caller's `Idempotency-Key` stands for; kept for 24 h. `key` is unique for each principal. */
export interface ReceiptRow {
  readonly principalId: string;
  readonly key: string;
  /** Of the request that the key was first used with. */
  readonly digest: string;
  readonly conversationRef: string;
  /** JSON of the answer. Null while the turn runs: found so after a crash, the outcome is unknown. Null too once its conversation was deleted. */
  readonly outcomeJson: string | null;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

/** What is kept of the outcome of a turn: enough to answer its request again. */
export type KeptOutcome = Pick<TurnOutcome, 'finishReason' | 'text' | 'tokensUsed' | 'conversationRef' | 'sessionKey' | 'traceId'> & {
  /** Under a key without the provider's own sentence. */
  readonly failure?: OwnersFailure;
};

/** A turn as one of the requests sees it that came under its key. */
export interface KeyedTurn {
  /**
   * What was streamed beyond the last call of it, as soon as there is something; undefined when there is nothing more:
   * the turn has ended, or the caller is gone.
   */
  next(): Promise<KeyedText | undefined>;
  /** Rejects with the `AppError` of a turn that did not begin, such as `conflict` for another body under the key. */
  readonly outcome: Promise<KeptOutcome>;
}

export interface KeyedText {
  /** Number of the first fragment: those of a turn are counted from 1. */
  readonly firstId: number;
  /** Texts as the inside of JSON string literals. */
  readonly fragments: readonly string[];
  /** True when they do not join up with what this reader, or the request that it continues, had before. */
  readonly gap: boolean;
}

export interface ReceiptsApi {
  /**
   * Runs the turn, attaches to the one that runs under the key, or finds the one that ended. `after` is the number of
   * the last fragment that the caller has already. Fails with `conflict` for another request under the key, and with
   * `rate_limited` when too many run. The caller's signal only ends its own reading.
   */
  execute(keyed: { readonly key: string; readonly after?: number | undefined }, request: TurnRequest, call: CallContext): Promise<KeyedTurn>;
}
