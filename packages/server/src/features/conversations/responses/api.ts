import type { CallContext } from '../../../kernel/call-context.ts';
import type { ModelMessage } from '../../../llm/model.ts';

/** One stored answer of `/v1/responses`; it holds its own messages only, what came before it is reached by `previousId`. */
export interface ResponseRow {
  readonly id: string;
  readonly previousId: string | null;
  readonly principalId: string;
  readonly agentId: string;
  /** JSON of the response object, as it was answered. */
  readonly bodyJson: string;
  /** JSON of the system and developer texts of the input, as they were sent; the request's `instructions` are not among them. */
  readonly systemJson: string;
  /** JSON of the `ModelMessage`s that the request brought and the turn added. */
  readonly messagesJson: string;
  /** JSON of the items of the input, as they are listed; null for responses of versions that did not keep them. */
  readonly inputJson?: string | null;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
}

/** What a response that follows stands on, oldest first. */
export interface ResponseHistory {
  readonly system: readonly string[];
  /** Fenced already, as they were kept. */
  readonly messages: readonly ModelMessage[];
}

/** Stored answers of `/v1/responses`. What is not the caller's, or of an agent that its token may not reach, is `not_found` like what never was. */
export interface ResponsesApi {
  /** Of a response and all before it; `invalid_params` when they are too many or too long together. */
  history(id: string, call: CallContext): Promise<ResponseHistory>;
  /** The stored body. */
  get(id: string, call: CallContext): Promise<Readonly<Record<string, unknown>>>;
  /** The items of its input; undefined when they were not kept. */
  input(id: string, call: CallContext): Promise<readonly Readonly<Record<string, unknown>>[] | undefined>;
  /** Ends it for everything that follows it, too. */
  delete(id: string, call: CallContext): Promise<void>;
}
