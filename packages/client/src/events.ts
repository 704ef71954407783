import type { EventGap, EventKind, EventPayload } from '@gatehouse/contract';
import { createError, type GatehouseError } from './errors.ts';
import type { Http } from './http.ts';
import { isPassing, reconnectDelayMs, sleep } from './retry.ts';
import type { StreamEvent, StreamPosition } from './sse.ts';
import { defaultIdleTimeoutMs, openStream, parseData } from './stream.ts';
import type { ReplyContext } from './wire.ts';

/** An event of the server by kind. A newer server may send kinds that are missing here. */
export type ServerEvent = { [K in EventKind]: { readonly kind: K; readonly id: string | undefined; readonly payload: EventPayload<K> } }[EventKind];

/** Reports missed events that the server can no longer send: reload any state derived from events. */
export interface GapEvent {
  readonly kind: 'gap';
  readonly id: string | undefined;
  readonly payload: EventGap;
}

export type EventStreamState = 'connecting' | 'open' | 'waiting';

export interface EventsOptions {
  /** Kinds to receive; default: all that the token may see. */
  readonly kinds?: readonly EventKind[] | undefined;
  /** Continue after this event of an earlier stream. */
  readonly lastEventId?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Idle timeout of the connection in milliseconds (45 s). */
  readonly idleTimeoutMs?: number;
  /** First and longest pause before reconnecting, in milliseconds; a value from the server replaces the first. */
  readonly initialDelayMs?: number;
  readonly maxDelayMs?: number;
  /** Called on each state change; `error` says why the stream is waiting. */
  readonly onState?: (state: EventStreamState, error?: GatehouseError) => void;
}

export type Events = (options?: EventsOptions) => AsyncGenerator<ServerEvent | GapEvent, void, undefined>;

/** Time limit for the response head, which the server sends at once. */
const headTimeoutMs = 30_000;

/**
 * `GET /api/events`: reconnects whenever the connection is lost and continues after the last event. Throws the reason
 * of the signal, or a permanent failure: a refused token or an unknown kind.
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

/** Parses an event; `ping` keeps the connection alive and `bye` announces its end, so both are dropped. */
function readEvent({ type, data, id }: StreamEvent, context: ReplyContext): ServerEvent | GapEvent | undefined {
  if (type === 'ping' || type === 'bye') return undefined;
  // The only place where an event gets its type: the server guarantees the contract of payloads.
  return { kind: type, id: id === '' ? undefined : id, payload: parseData(data, context) } as ServerEvent | GapEvent;
}
