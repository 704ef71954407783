import type { CallContext } from '../../../kernel/call-context.ts';
import type { OperationCall } from '../../../kernel/db/operation.ts';
import type { ModelMessage } from '../../../llm/model.ts';

/** One stored answer of `/v1/responses` with only its own messages; `previousId` links to the previous one. */
export interface ResponseRow {
  readonly id: string;
  readonly previousId: string | null;
  readonly principalId: string;
  readonly agentId: string;
  /** JSON of the response object as sent to the client. */
  readonly bodyJson: string;
  /** JSON of the system and developer texts of the input as sent, without the request's `instructions`. */
  readonly systemJson: string;
  /** JSON of the `ModelMessage`s of the request and of the turn. */
  readonly messagesJson: string;
  /** JSON of the listed input items; null for responses of versions that did not store them. */
  readonly inputJson?: string | null;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

/** History of a follow-up response, oldest first. */
export interface ResponseHistory {
  readonly system: readonly string[];
  /** Stored already fenced. */
  readonly messages: readonly ModelMessage[];
}

/** Stored answers of `/v1/responses`. Those of other callers or of agents out of the token's reach are `not_found`, like unknown ones. */
export interface ResponsesApi {
  /** Returns the call that stores a response in the transaction of its turn. */
  keepCall(row: ResponseRow): OperationCall;
  /** Returns the history up to a response; throws `invalid_params` when it is too deep or too long. */
  history(id: string, call: CallContext): Promise<ResponseHistory>;
  /** Returns the stored body. */
  get(id: string, call: CallContext): Promise<Readonly<Record<string, unknown>>>;
  /** Returns its input items; undefined when they were not stored. */
  input(id: string, call: CallContext): Promise<readonly Readonly<Record<string, unknown>>[] | undefined>;
  /** Deletes a response, which also breaks the history of its follow-ups. */
  delete(id: string, call: CallContext): Promise<void>;
}
