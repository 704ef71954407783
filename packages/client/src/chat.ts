import type { ChatCompletion, ChatCompletionChunk, ChatCompletionRequest } from '@gatehouse/contract';
import type { CallOptions } from './calls.ts';
import { createError } from './errors.ts';
import type { Http } from './http.ts';
import { defaultIdleTimeoutMs, openStream, parseData } from './stream.ts';
import { errorFromV1, isRecord, type ReplyContext } from './wire.ts';

/** A completion request: `model` is `provider/model`, a bare model id, or an agent as `agent/<id>`. */
export type ChatRequest = Omit<ChatCompletionRequest, 'stream' | 'stream_options'>;

export type Usage = ChatCompletion['usage'];
export type ChatFinish = ChatCompletion['choices'][number]['finish_reason'];

/** `reason` is the `/v1` finish reason, `turnReason` why the turn really ended (such as `max_steps`). `usage` comes last. */
export type ChatEvent =
  | { readonly type: 'delta'; readonly text: string }
  | { readonly type: 'finish'; readonly reason: ChatFinish; readonly turnReason: string | undefined }
  | { readonly type: 'usage'; readonly usage: Usage };

export interface StreamOptions extends CallOptions {
  /** Idle timeout of the connection in milliseconds. */
  readonly idleTimeoutMs?: number;
}

export type Chat = (request: ChatRequest, options?: CallOptions) => Promise<ChatCompletion>;
export type StreamChat = (request: ChatRequest, options?: StreamOptions) => AsyncGenerator<ChatEvent, void, undefined>;

const path = '/v1/chat/completions';

/** Completions are never retried, because they cost money. Leaving the loop of `streamChat` aborts the turn on the server. */
export function createChat(http: Http, defaultTimeoutMs: number): { chat: Chat; streamChat: StreamChat } {
  return {
    async chat(request, { signal, timeoutMs = defaultTimeoutMs } = {}) {
      const { body } = await http.json({ method: 'POST', path, body: { ...request, stream: false }, signal, timeoutMs });
      return body as ChatCompletion;
    },
    async *streamChat(request, { signal, timeoutMs = defaultTimeoutMs, idleTimeoutMs = defaultIdleTimeoutMs } = {}) {
      const { context, events } = await openStream(http, {
        method: 'POST',
        path,
        body: { ...request, stream: true },
        headers: { 'x-gatehouse-extensions': '1' },
        signal,
        timeoutMs,
        idleTimeoutMs,
      });
      for await (const { data } of events) {
        if (data === '[DONE]') return;
        yield* eventsOf(data, context);
      }
      throw createError({
        ...context,
        code: 'connection_failed',
        message: 'The stream ended before it was complete; the text so far is not the whole answer.',
      });
    },
  };
}

function* eventsOf(data: string, context: ReplyContext): Generator<ChatEvent, void, undefined> {
  const chunk = parseChunk(data, context);
  const choice = chunk.choices[0];
  if (choice?.delta.content !== undefined && choice.delta.content !== '') yield { type: 'delta', text: choice.delta.content };
  if (choice?.finish_reason != null) yield { type: 'finish', reason: choice.finish_reason, turnReason: chunk.gatehouse?.finish_reason };
  if (chunk.usage !== undefined) yield { type: 'usage', usage: chunk.usage };
}

function parseChunk(data: string, context: ReplyContext): ChatCompletionChunk {
  const value = parseData(data, context);
  if (isRecord(value) && isRecord(value['error'])) throw errorFromV1(value['error'], context);
  if (!isChunk(value))
    throw createError({ ...context, code: 'bad_reply', message: 'The stream contains a data line that is not a completion chunk.' });
  return value;
}

/** Distinguishes a chunk from other JSON; relies on the contract for its content. */
function isChunk(value: unknown): value is ChatCompletionChunk {
  return isRecord(value) && Array.isArray(value['choices']) && value['choices'].every((choice) => isRecord(choice) && isRecord(choice['delta']));
}
