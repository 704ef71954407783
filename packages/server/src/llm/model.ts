import type { AnswerEffort, ModelTier } from '@gatehouse/contract';
import type { JsonFragment } from '../kernel/json-fragment.ts';

/** US dollars per million tokens. */
export interface ModelPrice {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** A model of the catalog. */
export interface ModelInfo {
  readonly provider: string;
  readonly modelId: string;
  readonly displayName: string;
  /** Tokens that fit in one call, input and output together. */
  readonly contextWindow: number;
  /** Output tokens that one call may make. */
  readonly maxTokens: number;
  readonly input: readonly ('text' | 'image' | 'pdf')[];
  readonly reasoning: boolean;
  readonly price: ModelPrice | null;
  /** Configured capability; see `tierOf`. */
  readonly tier?: ModelTier;
  readonly validated: boolean;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text as the model wrote it; parsed when the tool runs. */
  readonly arguments: string;
}

/** A part of a user's message. `url` of an image is a `data:` or an `https:` URL; a file is always a `data:` URL. */
export type ModelPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly url: string; readonly detail?: 'low' | 'high' | 'auto' }
  | { readonly type: 'file'; readonly url: string; readonly name: string };

/** Reasoning of a model, signed by its provider: no other provider can read it back. */
export type ThinkingBlock =
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'redacted_thinking'; readonly data: string };

/** `content` is the text of a message; when there are `parts`, the model gets them instead. */
export type ModelMessage = (
  | {
      readonly role: 'user';
      readonly content: string;
      readonly parts?: readonly ModelPart[];
      /** Images and files of the preceding tool results: few wires support them in the results. */
      readonly ofResults?: true;
    }
  | {
      readonly role: 'assistant';
      readonly content: string;
      readonly toolCalls?: readonly ToolCall[];
      /** The model's reasoning before its answer; sent to providers that require it. */
      readonly reasoning?: string;
      /** The same for signed reasoning. */
      readonly thinking?: readonly ThinkingBlock[];
      /** Reasoning that is stored with the message for people; no wire sends it. */
      readonly thought?: { readonly text: string; readonly durationMs: number; readonly isCut?: true };
    }
  | { readonly role: 'tool'; readonly content: string; readonly toolCallId: string; readonly toolName: string; readonly isError?: boolean }
) & {
  /** Ends a prefix that the caller repeats with its next call; for providers whose cache is controlled by such marks. */
  readonly cacheMark?: true;
};

export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Asks a vendor that supports it to enforce the schema. */
  readonly strict?: boolean;
}

/** Options of a call beyond the conversation. Unsupported ones are refused before the call, never dropped. */
export interface ModelOptions {
  readonly topP?: number;
  readonly topK?: number;
  readonly stop?: readonly string[];
  readonly seed?: number;
  readonly presencePenalty?: number;
  readonly frequencyPenalty?: number;
  readonly responseFormat?:
    | { readonly type: 'json_object' }
    | { readonly type: 'json_schema'; readonly name: string; readonly schema: Readonly<Record<string, unknown>>; readonly strict?: boolean };
  readonly toolChoice?: 'auto' | 'none' | 'required' | { readonly name: string };
  readonly parallelToolCalls?: boolean;
  readonly reasoningEffort?: string;
  /** Opaque id of the end user, for the vendor's abuse checks. */
  readonly endUser?: string;
  /** Permission to reason before the answer. Models that don't return their reasoning answer without it. */
  readonly thinking?: { readonly type: 'enabled'; readonly budgetTokens: number } | { readonly type: 'adaptive' | 'disabled' };
  /** A hint at how much effort the answer is worth, for providers that accept one. */
  readonly effort?: string;
  /** How long a model reasons that has a choice (`Models.effortsOf`); others answer as they do. */
  readonly depth?: AnswerEffort;
  /** Same as `cacheMark` of a message, at the end of the system prompt. */
  readonly systemCacheMark?: true;
}

export interface ModelRequest {
  readonly model: ModelInfo;
  /** Joined in order; the first parts are the stable ones, for the provider's prompt cache. */
  readonly system: readonly string[];
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly ToolSpec[];
  readonly temperature?: number;
  readonly maxTokens?: number;
  readonly options?: ModelOptions;
  readonly cacheRetention: 'none' | 'short' | 'long';
  /** The longest answer that is accepted from any provider, in bytes (`models.maxAnswerBytes`). */
  readonly maxAnswerBytes: number;
  /** Deadline of the whole call. First byte and idle gap have separate deadlines (60 s each). */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Tokens of one call as the provider reported them; `estimated` when it did not and they were counted here. `input` includes cached input. */
export interface ModelUsage {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly estimated: boolean;
}

export interface ModelResult {
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finish: 'stop' | 'length' | 'tool_calls' | 'content_filter';
  readonly usage: ModelUsage;
  readonly responseId?: string;
  /** Present when the model was permitted to reason and its provider returns the reasoning. */
  readonly thinking?: readonly ThinkingBlock[];
  /** The stop sequence that ended the answer, where the provider reports it. */
  readonly stopSequence?: string;
}

/**
 * Receives a streamed answer. `text` gets a fragment as the inside of a JSON string literal (escaped, without quotes), so
 * that it can be passed on unparsed; each fragment is valid on its own. `flush` follows the last fragment of one read of the
 * upstream socket; when it returns false the client stops reading the upstream until `drained` resolves.
 */
export interface ModelSink {
  /** Receives the reasoning that precedes text: fragments like those of `text`, then each block when it is complete. */
  readonly thinking?: { fragment(fragment: JsonFragment): void; block(block: ThinkingBlock): void };
  text(fragment: JsonFragment): void;
  flush(): boolean;
  drained(): Promise<void>;
  /** The requester does not see the stream: another model may generate the answer again. */
  readonly onlyWatched?: boolean;
}

export type ModelErrorKind =
  | 'auth'
  | 'billing'
  | 'rate_limit'
  | 'overloaded'
  | 'server'
  | 'network'
  | 'timeout'
  | 'bad_request'
  | 'context_length'
  | 'bad_response'
  /** Longer than the request allows. */
  | 'oversized'
  | 'aborted';

/** Why a model call failed; `kind` decides what may be done about it, never the message. */
export class ModelError extends Error {
  override readonly name = 'ModelError';
  readonly kind: ModelErrorKind;
  readonly status?: number;
  readonly retryAfterMs?: number;
  /** Set for a `bad_request` that may concern the key or the account instead: its provider does not say which. */
  readonly possibly?: 'auth' | 'billing';
  /** Set when text was already passed to the sink: the call must not be repeated elsewhere. */
  readonly partial?: ModelResult;
  /** Estimated usage of the failed call, when the provider had started to answer, or had the request when the call was aborted. */
  readonly usage?: ModelUsage;

  constructor(
    kind: ModelErrorKind,
    message: string,
    details: {
      status?: number;
      retryAfterMs?: number;
      possibly?: 'auth' | 'billing';
      partial?: ModelResult;
      usage?: ModelUsage;
      cause?: unknown;
    } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.kind = kind;
    if (details.status !== undefined) this.status = details.status;
    if (details.retryAfterMs !== undefined) this.retryAfterMs = details.retryAfterMs;
    if (details.possibly !== undefined) this.possibly = details.possibly;
    if (details.partial !== undefined) this.partial = details.partial;
    if (details.usage !== undefined) this.usage = details.usage;
  }
}

/**
 * A client for one provider. With a sink the answer is streamed; the result is complete either way. `key` is the position of the key to use,
 * the first by default. Fails with `ModelError` only.
 */
export interface ModelClient extends AsyncDisposable {
  generate(request: ModelRequest, sink?: ModelSink, key?: number): Promise<ModelResult>;
}

/** Counts tokens without a network: an upper estimate, accurate to 20 %. */
export type CountTokens = (text: string) => number;
