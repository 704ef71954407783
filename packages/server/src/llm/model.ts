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
  readonly validated: boolean;
}

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text as the model wrote it; parsed by whoever runs the tool. */
  readonly arguments: string;
}

/** A piece of a user's message. `url` of an image is a `data:` or an `https:` URL; a file is always a `data:` URL. */
export type ModelPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image'; readonly url: string; readonly detail?: 'low' | 'high' | 'auto' }
  | { readonly type: 'file'; readonly url: string; readonly name: string };

/** Reasoning of a model, signed by the provider that made it: no other provider can read it back. */
export type ThinkingBlock =
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'redacted_thinking'; readonly data: string };

/** `content` is the text of a message; where `parts` are there, they are what the model is sent in its place. */
export type ModelMessage = (
  | {
      readonly role: 'user';
      readonly content: string;
      readonly parts?: readonly ModelPart[];
      /** Images and files of the tool results before it: few wires have room for them in the results. */
      readonly ofResults?: true;
    }
  | {
      readonly role: 'assistant';
      readonly content: string;
      readonly toolCalls?: readonly ToolCall[];
      /** What the model thought before it answered; sent to providers that want it back. */
      readonly reasoning?: string;
      /** The same where it is signed. */
      readonly thinking?: readonly ThinkingBlock[];
    }
  | { readonly role: 'tool'; readonly content: string; readonly toolCallId: string; readonly toolName: string; readonly isError?: boolean }
) & {
  /** Ends a prefix that the caller repeats with its next call; for providers whose cache is steered by such marks. */
  readonly cacheMark?: true;
};

export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Asks a vendor that can to hold the model to the schema. */
  readonly strict?: boolean;
}

/** What a caller asks of the model beyond the conversation. What a vendor cannot honour is refused before the call, never dropped. */
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
  /** Opaque id of the person behind the call, for the vendor's abuse checks. */
  readonly endUser?: string;
  /** Permission to reason before the answer. Models that don't return their reasoning answer without it. */
  readonly thinking?: { readonly type: 'enabled'; readonly budgetTokens: number } | { readonly type: 'adaptive' | 'disabled' };
  /** A hint at how much effort the answer is worth, for providers that take one. */
  readonly effort?: string;
  /** As `cacheMark` of a message, at the end of the system prompt. */
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
  /** The longest answer that is taken from any provider, in bytes (`models.maxAnswerBytes`). */
  readonly maxAnswerBytes: number;
  /** Deadline of the whole call. First byte and idle gap have deadlines of their own (60 s each). */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Tokens of one call as the provider reported them; `estimated` when it did not and they were counted here. `input` includes what came from the cache. */
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
 * Receives a streamed answer. `text` gets a piece as the inside of a JSON string literal (escaped, without quotes), so
 * that it can be passed on unparsed; each piece is valid on its own. `flush` follows the last piece of one read of the
 * upstream socket; when it returns false the client stops reading the upstream until `drained` resolves.
 */
export interface ModelSink {
  /** Receives the reasoning that precedes text: fragments like those of `text`, then each block when it is complete. */
  readonly thinking?: { fragment(jsonFragment: string): void; block(block: ThinkingBlock): void };
  text(jsonFragment: string): void;
  flush(): boolean;
  drained(): Promise<void>;
  /** Nobody who asked reads along: what was streamed may be made again by another model. */
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
  /** Longer than what was asked for allows. */
  | 'oversized'
  | 'aborted';

/** Why a model call failed; what may be done about it is decided from `kind`, never from the message. */
export class ModelError extends Error {
  override readonly name = 'ModelError';
  readonly kind: ModelErrorKind;
  readonly status?: number;
  readonly retryAfterMs?: number;
  /** Of a `bad_request` that may concern the key or the account instead: its provider does not say which. */
  readonly possibly?: 'auth' | 'billing';
  /** Set when text was already handed to the sink: the call must not be repeated elsewhere. */
  readonly partial?: ModelResult;
  /** What the failed call is estimated to have used, when the provider had begun to answer, or had the request and was left. */
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

/** One wire to one provider. With a sink the answer is streamed; the result is whole either way. Fails with `ModelError` only. */
export interface ModelClient extends AsyncDisposable {
  generate(request: ModelRequest, sink?: ModelSink): Promise<ModelResult>;
}

/** Counts tokens without a network: an upper estimate, good to 20 %. */
export type CountTokens = (text: string) => number;
