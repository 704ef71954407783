import { type EventKind, eventKinds, events as declared } from '@gatehouse/contract';
import type { EventsApi } from '../../features/operations/events/api.ts';
import { AppError } from '../../kernel/app-error.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { HttpCall } from '../http-call.ts';
import { byeFrame, eventFrame, pingFrame } from './event-frames.ts';
import type { EventReader } from './event-reader.ts';

const pingMs = 15_000;
const sweepMs = 1_000;
const retryAfterMs = 5_000;

export interface EventReadersDeps {
  readonly events: EventsApi;
  readonly clock: Clock;
  /** Limit of open streams; one token may hold half of them. */
  readonly maxStreams: number;
}

/** The client of a stream, and the kinds that it gets. */
export interface EventSubscription {
  readonly tokenId: string;
  readonly kinds: ReadonlySet<EventKind>;
}

/** The open event streams: all readers share the frames, one ping timer and one check for slow readers. */
export class EventReaders {
  readonly #deps: EventReadersDeps;
  readonly #maxPerToken: number;
  readonly #readers = new Set<EventReader>();
  readonly #byToken = new Map<string, number>();
  readonly #needs: TransientNeeds;
  #unfollow: (() => void) | undefined;
  #cancelPing: (() => void) | undefined;
  #cancelSweep: (() => void) | undefined;
  #ended = false;

  constructor(deps: EventReadersDeps) {
    this.#deps = deps;
    this.#maxPerToken = Math.ceil(deps.maxStreams / 2);
    this.#needs = new TransientNeeds(deps.events);
  }

  get size(): number {
    return this.#readers.size;
  }

  /** Fails when the token, or the gateway, has too many streams. */
  admit(tokenId: string): void {
    const { maxStreams } = this.#deps;
    if ((this.#byToken.get(tokenId) ?? 0) >= this.#maxPerToken)
      throw new AppError('rate_limited', `This token has ${this.#maxPerToken} event streams open already, half of gateway.maxEventStreams`, {
        retryAfterMs,
      });
    if (this.#readers.size >= maxStreams)
      throw new AppError('unavailable', `${maxStreams} event streams are open already, as many as gateway.maxEventStreams allows`, { retryAfterMs });
  }

  /** Adds a reader until its call is closed. */
  join(call: HttpCall, reader: EventReader, { tokenId, kinds }: EventSubscription): void {
    if (this.#readers.size === 0) this.#start();
    this.#readers.add(reader);
    this.#byToken.set(tokenId, (this.#byToken.get(tokenId) ?? 0) + 1);
    this.#needs.add(kinds);
    call.outgoing.on('close', () => {
      this.#readers.delete(reader);
      const left = (this.#byToken.get(tokenId) ?? 0) - 1;
      if (left > 0) this.#byToken.set(tokenId, left);
      else this.#byToken.delete(tokenId);
      this.#needs.remove(kinds);
      if (this.#readers.size === 0) this.#stop();
    });
  }

  /** Watches slow readers; ends when none is behind. */
  watchSlow(): void {
    this.#cancelSweep ??= this.#deps.clock.after(sweepMs, () => this.#sweep());
  }

  /** Sends the goodbye frame to all readers. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const reader of this.#readers) reader.end(byeFrame);
    // A reader whose client reads nothing more is not waited for.
    if (this.#readers.size > 0) this.#deps.clock.after(sweepMs, () => this.#readers.forEach((reader) => reader.cut()));
  }

  #start(): void {
    this.#unfollow = this.#deps.events.follow((event) => {
      let bytes: Buffer | undefined;
      const frame = (): Buffer => (bytes ??= Buffer.from(eventFrame(event)));
      for (const reader of this.#readers) reader.hear(event, frame);
    });
    this.#pingLater();
  }

  #stop(): void {
    this.#unfollow?.();
    this.#cancelPing?.();
    this.#cancelSweep?.();
    this.#cancelSweep = undefined;
  }

  #pingLater(): void {
    const { clock } = this.#deps;
    this.#cancelPing = clock.after(pingMs, () => {
      const frame = pingFrame(clock.now());
      for (const reader of this.#readers) reader.ping(frame);
      this.#pingLater();
    });
  }

  #sweep(): void {
    this.#cancelSweep = undefined;
    const now = this.#deps.clock.monotonic();
    for (const reader of this.#readers) {
      if (!reader.isBehind) continue;
      if (reader.isStalled(now)) reader.cut();
      else this.watchSlow();
    }
  }
}

/** Has transient events built only while a reader wants them. */
class TransientNeeds {
  readonly #events: EventsApi;
  readonly #kinds = eventKinds.filter((kind) => declared[kind].transient === true).map((kind) => ({ kind, readers: 0, release: () => {} }));

  constructor(events: EventsApi) {
    this.#events = events;
  }

  add(wanted: ReadonlySet<EventKind>): void {
    for (const need of this.#kinds) {
      if (!wanted.has(need.kind)) continue;
      if (need.readers === 0) need.release = this.#events.need(need.kind);
      need.readers += 1;
    }
  }

  remove(wanted: ReadonlySet<EventKind>): void {
    for (const need of this.#kinds) {
      if (!wanted.has(need.kind)) continue;
      need.readers -= 1;
      if (need.readers === 0) need.release();
    }
  }
}
