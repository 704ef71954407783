import { type EventKind, eventKinds, events as declared } from '@gatehouse/contract';
import * as z from 'zod';
import type { EventsApi } from '../../features/operations/events/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import type { Clock } from '../../kernel/clock.ts';
import { nearest } from '../../kernel/config/nearest.ts';
import type { Log } from '../../kernel/log.ts';
import type { HttpCall } from '../http-call.ts';
import { parseQuery, refuseQueryToken } from '../query.ts';
import { beginEventStream, streamError } from '../sse-writer.ts';
import { byeFrame, eventFrame, pingFrame } from './event-frames.ts';
import { EventReader, type EventReaderDeps } from './event-reader.ts';

const pingMs = 15_000;
const sweepMs = 1_000;
const retryAfterMs = 5_000;

export interface EventStreamsDeps {
  readonly events: EventsApi;
  readonly clock: Clock;
  readonly log: Log;
  /** Limit of open streams; one token may hold half of them. */
  readonly maxStreams: number;
}

export interface EventStreams {
  readonly route: (call: HttpCall) => void;
  readonly size: number;
  /** Sends the goodbye frame to all readers. */
  end(): void;
}

const transientKinds = eventKinds.filter((kind) => declared[kind].transient === true);

/** `GET /api/events` (http-gateway.md §6; decisions §4): all readers share the frames, one ping timer and one check for slow readers. */
export function createEventStreams(deps: EventStreamsDeps): EventStreams {
  const { events, clock, log, maxStreams } = deps;
  const maxPerToken = Math.ceil(maxStreams / 2);
  const readers = new Set<EventReader>();
  const byToken = new Map<string, number>();
  const transient = transientKinds.map((kind) => ({ kind, by: 0, release: undefined as (() => void) | undefined }));
  const shared: EventReaderDeps = {
    events,
    onBehind: watchSlow,
    onFailure: (error, call) => log.warn({ requestId: call.requestId, err: error }, 'An event stream could not continue'),
  };
  let unfollow: (() => void) | undefined;
  let cancelPing: (() => void) | undefined;
  let cancelSweep: (() => void) | undefined;
  let ended = false;

  function start(): void {
    unfollow = events.follow((event) => {
      let bytes: Buffer | undefined;
      const frame = (): Buffer => (bytes ??= Buffer.from(eventFrame(event)));
      for (const reader of readers) reader.hear(event, frame);
    });
    cancelPing = clock.after(pingMs, ping);
  }

  function stop(): void {
    unfollow?.();
    cancelPing?.();
    cancelSweep?.();
    cancelSweep = undefined;
  }

  function ping(): void {
    const frame = pingFrame(clock.now());
    for (const reader of readers) reader.ping(frame);
    cancelPing = clock.after(pingMs, ping);
  }

  function watchSlow(): void {
    cancelSweep ??= clock.after(sweepMs, sweep);
  }

  /** Runs while a reader is behind. */
  function sweep(): void {
    cancelSweep = undefined;
    const now = clock.monotonic();
    for (const reader of readers) {
      if (!reader.isBehind) continue;
      if (reader.isStalled(now)) reader.cut();
      else watchSlow();
    }
  }

  function join(call: HttpCall, reader: EventReader, tokenId: string, kinds: ReadonlySet<EventKind> | undefined): void {
    if (readers.size === 0) start();
    readers.add(reader);
    byToken.set(tokenId, (byToken.get(tokenId) ?? 0) + 1);
    countNeeds(kinds, 1);
    call.outgoing.on('close', () => {
      readers.delete(reader);
      const left = (byToken.get(tokenId) ?? 0) - 1;
      if (left > 0) byToken.set(tokenId, left);
      else byToken.delete(tokenId);
      countNeeds(kinds, -1);
      if (readers.size === 0) stop();
    });
  }

  function countNeeds(kinds: ReadonlySet<EventKind> | undefined, change: number): void {
    for (const need of transient) {
      if (kinds !== undefined && !kinds.has(need.kind)) continue;
      need.by += change;
      if (need.by === 0) need.release?.();
      else if (need.by === change) need.release = events.need(need.kind);
    }
  }

  function admit(tokenId: string): void {
    if ((byToken.get(tokenId) ?? 0) >= maxPerToken)
      throw new AppError('rate_limited', `This token has ${maxPerToken} event streams open already, half of gateway.maxEventStreams`, {
        retryAfterMs,
      });
    if (readers.size >= maxStreams)
      throw new AppError('unavailable', `${maxStreams} event streams are open already, as many as gateway.maxEventStreams allows`, { retryAfterMs });
  }

  return {
    get size() {
      return readers.size;
    },
    route(call) {
      refuseQueryToken(call);
      const { identity } = call;
      if (identity === undefined) throw new AppError('unauthenticated', 'A bearer token is required');
      const { kinds: names } = parseQuery(Query, call);
      const kinds = names === undefined ? undefined : new Set(names);
      const lastEventId = lastEventIdOf(call);
      const head = call.incoming.method === 'HEAD';
      if (!head) admit(identity.tokenId);
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
      join(call, reader, identity.tokenId, kinds);
      reader.begin(lastEventId);
      call.handOver();
    },
    end() {
      if (ended) return;
      ended = true;
      for (const reader of readers) reader.end(byeFrame);
      // A reader whose client reads nothing more is not waited for.
      if (readers.size > 0) clock.after(sweepMs, () => readers.forEach((reader) => reader.cut()));
    },
  };
}

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
