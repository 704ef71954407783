import { createError } from './errors.ts';
import { type Http, type HttpRequest, replyContext } from './http.ts';
import { readEventStream, type StreamEvent, type StreamPosition } from './sse.ts';
import type { ReplyContext } from './wire.ts';

/** The gateway sends something at least every 15 s; three misses are no chance. */
export const defaultIdleTimeoutMs = 45_000;

export interface StreamRequest extends HttpRequest {
  /** Silence after which the connection counts as dead, in milliseconds. */
  readonly idleTimeoutMs: number;
  /** Sent as `Last-Event-ID` when it has one, and moved on. */
  readonly position?: StreamPosition;
}

export interface OpenStream {
  readonly context: ReplyContext;
  /** Throws only errors of ours, or the reason of the signal. */
  readonly events: AsyncGenerator<StreamEvent, void, undefined>;
}

/** Sends a request whose answer is an event stream and returns when its head is there. */
export async function openStream(http: Http, request: StreamRequest): Promise<OpenStream> {
  const { idleTimeoutMs, position } = request;
  const resume = position === undefined || position.lastEventId === '' ? {} : { 'last-event-id': position.lastEventId };
  const { response, toFailure } = await http.open({ ...request, headers: { accept: 'text/event-stream', ...resume, ...request.headers } });
  const context = replyContext(response);
  const { body } = response;
  if (body === null || response.headers.get('content-type')?.startsWith('text/event-stream') !== true) {
    await body?.cancel();
    throw createError({
      ...context,
      code: 'bad_reply',
      message: `The server answered ${response.status} with something that is not an event stream.`,
    });
  }

  async function* read(from: ReadableStream<Uint8Array>): OpenStream['events'] {
    try {
      yield* readEventStream(from, { idleTimeoutMs, ...(position === undefined ? {} : { position }) });
    } catch (error) {
      throw toFailure(error);
    }
  }
  return { context, events: read(body) };
}

/** Reads the data of one event. */
export function parseData(data: string, context: ReplyContext): unknown {
  try {
    return JSON.parse(data);
  } catch (cause) {
    throw createError({ ...context, code: 'bad_reply', message: 'The stream holds a data line that is not JSON.', cause });
  }
}
