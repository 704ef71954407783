import type { EventGap, EventKind, EventPayload } from '@gatehouse/contract';
import { createError, type GatehouseError } from './errors.ts';
import type { Http } from './http.ts';
import { isPassing, reconnectDelayMs, sleep } from './retry.ts';
import type { StreamEvent, StreamPosition } from './sse.ts';
import { defaultIdleTimeoutMs, openStream, parseData } from './stream.ts';
import type { ReplyContext } from './wire.ts';

/** What happened at the server, by its kind. A newer server may send kinds that these types do not know. */
export type ServerEvent = { [K in EventKind]: { readonly kind: K; readonly id: string | undefined; readonly payload: EventPayload<K> } }[EventKind];

/** Events were missed that the server cannot send any more: whoever keeps a picture of it reads it anew. */
export interface GapEvent {
  readonly kind: 'gap';
  readonly id: string | undefined;
  readonly payload: EventGap;
}

export type EventStreamState = 'connecting' | 'open' | 'waiting';

export interface EventsOptions {
  /** Only these; all that the token may see otherwise. */
  readonly kinds?: readonly EventKind[] | undefined;
  /** Go on after this event, of an earlier stream. */
  readonly lastEventId?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Silence after which the connection counts as dead, in milliseconds (45 s). */
  readonly idleTimeoutMs?: number;
  /** First and longest pause before another connection, in milliseconds; the server's own wish replaces the first. */
  readonly initialDelayMs?: number;
  readonly maxDelayMs?: number;
  /** Told of each change; `error` says why a connection is waited for. */
  readonly onState?: (state: EventStreamState, error?: GatehouseError) => void;
}

export type Events = (options?: EventsOptions) => AsyncGenerator<ServerEvent | GapEvent, void, undefined>;

/** Time for the head of the stream; it is sent at once. */
const headTimeoutMs = 30_000;

/**
 * `GET /api/events`: connects again whenever the connection is lost and goes on after the last event. Throws the reason
 * of the signal, or a failure that does not pass: a token that is refused, a kind that there is none of.
 */
export function createEvents(http: Http): Events {
  return async function* events(options = {}) {
    const { kinds, lastEventId = '', signal, idleTimeoutMs = defaultIdleTimeoutMs, initialDelayMs = 1000, maxDelayMs = 30_000, onState } = options;
    const path = kinds === undefined ? '/api/events' : `/api/events?${new URLSearchParams({ kinds: kinds.join(',') })}`;
    const position: StreamPosition = { lastEventId, retryMs: undefined };
    for (let failures = 0; ; failures += 1) {
      let lost: GatehouseError;
      try {
        onState?.('connecting');
        const stream = await openStream(http, { method: 'GET', path, signal, timeoutMs: headTimeoutMs, idleTimeoutMs, position });
        onState?.('open');
        for await (const event of stream.events) {
          failures = 0;
          const read = readEvent(event, stream.context);
          if (read !== undefined) yield read;
        }
        lost = createError({ ...stream.context, code: 'connection_failed', message: 'The server ended the event stream.' });
      } catch (error) {
        if (!isPassing(error)) throw error;
        lost = error;
      }
      onState?.('waiting', lost);
      await sleep(reconnectDelayMs(lost, { failures, initialMs: position.retryMs ?? initialDelayMs, maxMs: maxDelayMs }), signal);
    }
  };
}

/** `ping` keeps the connection alive, `bye` says that it ends: both are for this side of it. */
function readEvent({ type, data, id }: StreamEvent, context: ReplyContext): ServerEvent | GapEvent | undefined {
  if (type === 'ping' || type === 'bye') return undefined;
  // The one place where an event gets its type: the server keeps the contract's promise about payloads.
  return { kind: type, id: id === '' ? undefined : id, payload: parseData(data, context) } as ServerEvent | GapEvent;
}
