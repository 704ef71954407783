import { createError } from './errors.ts';
import { type Http, type HttpRequest, replyContext } from './http.ts';
import { readEventStream, type StreamEvent, type StreamPosition } from './sse.ts';
import type { ReplyContext } from './wire.ts';

/** The gateway sends something at least every 15 s; this allows three misses. */
export const defaultIdleTimeoutMs = 45_000;

export interface StreamRequest extends HttpRequest {
  /** Idle timeout of the connection in milliseconds. */
  readonly idleTimeoutMs: number;
  /** Position sent as `Last-Event-ID` if set; updated while reading. */
  readonly position?: StreamPosition;
}

export interface OpenStream {
  readonly context: ReplyContext;
  /** Throws only `GatehouseError`s, or the reason of the signal. */
  readonly events: AsyncGenerator<StreamEvent, void, undefined>;
}

/** Sends a request for an event stream and returns when its head has arrived. */
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

/** Parses the data of an event. */
export function parseData(data: string, context: ReplyContext): unknown {
  try {
    return JSON.parse(data);
  } catch (cause) {
    throw createError({ ...context, code: 'bad_reply', message: 'The stream contains a data line that is not JSON.', cause });
  }
}
