import { type EventKind, eventKinds, events } from '@gatehouse/contract';
import * as z from 'zod';
import { AppError } from '../../kernel/app-error.ts';
import { nearest } from '../../kernel/config/nearest.ts';
import type { Log } from '../../kernel/log.ts';
import type { HttpCall } from '../http-call.ts';
import { parseQuery, refuseQueryToken } from '../query.ts';
import { beginEventStream, streamError } from '../sse-writer.ts';
import { EventReader, type EventReaderDeps } from './event-reader.ts';
import { EventReaders, type EventReadersDeps } from './event-readers.ts';

export interface EventStreamsDeps extends EventReadersDeps {
  readonly log: Log;
}

export interface EventStreams {
  readonly route: (call: HttpCall) => void;
  readonly size: number;
  /** Sends the goodbye frame to all readers. */
  end(): void;
}

/** `GET /api/events` (http-gateway.md §6; decisions §4). */
export function createEventStreams(deps: EventStreamsDeps): EventStreams {
  const readers = new EventReaders(deps);
  const shared: EventReaderDeps = {
    events: deps.events,
    onBehind: () => readers.watchSlow(),
    onFailure: (error, call) => deps.log.warn({ requestId: call.requestId, err: error }, 'An event stream could not continue'),
  };

  return {
    get size() {
      return readers.size;
    },
    end: () => readers.end(),
    route(call) {
      refuseQueryToken(call);
      const { identity } = call;
      if (identity === undefined) throw new AppError('unauthenticated', 'A bearer token is required');
      const { kinds: names } = parseQuery(Query, call);
      const kinds = names === undefined ? unnamedKinds : new Set(names);
      const lastEventId = lastEventIdOf(call);
      const head = call.incoming.method === 'HEAD';
      if (!head) readers.admit(identity.tokenId);
      // Chunks would double the cost of a write, and a stream needs no length: it ends with its connection.
      call.outgoing.useChunkedEncodingByDefault = false;
      call.setHeader('connection', 'close');
      beginEventStream(call);
      if (head) {
        call.outgoing.end();
        return;
      }
      const reader = new EventReader(shared, call, identity, kinds);
      call.streams = true;
      call.endStream = (error) => reader.end(streamError(call, error));
      readers.join(call, reader, { tokenId: identity.tokenId, kinds });
      reader.begin(lastEventId);
      call.handOver();
    },
  };
}

/** What a stream gets that names no kinds. */
const unnamedKinds: ReadonlySet<EventKind> = new Set(eventKinds.filter((kind) => events[kind].onRequest !== true));

const Query = z.strictObject({
  kinds: z
    .string()
    .optional()
    .transform((text, context) => {
      if (text === undefined) return undefined;
      return text.split(',').map((name): EventKind => {
        const kind = eventKinds.find((one) => one === name);
        if (kind !== undefined) return kind;
        const near = nearest(name, eventKinds);
        context.issues.push({
          code: 'custom',
          input: text,
          message: `there is no event kind "${name.slice(0, 100)}"${near === undefined ? '' : `, the nearest is "${near}"`}; expected kinds separated by commas`,
        });
        return z.NEVER;
      });
    }),
});

/** Accepts any id that was ever assigned; other text is the client's mistake. */
function lastEventIdOf(call: HttpCall): number | undefined {
  const given = call.incoming.headers['last-event-id'];
  if (given === undefined || given === '') return undefined;
  if (typeof given !== 'string' || !/^\d{1,20}$/.test(given))
    throw new AppError('invalid_params', 'Last-Event-ID: expected the id of an event of this stream, a whole number', { param: 'Last-Event-ID' });
  return Math.min(Number(given), Number.MAX_SAFE_INTEGER);
}
