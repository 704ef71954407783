import type { EventGap, EventKind } from '@gatehouse/contract';
import type { EventsApi, LoggedEvent } from '../../features/operations/events/api.ts';
import type { Identity } from '../../kernel/call-context.ts';
import type { HttpCall } from '../http-call.ts';
import { eventFrame, gapFrame, openingFrame } from './event-frames.ts';

/** Above this no more is written to a reader until it has read the backlog: it gets what it misses from the log. */
const softBytes = 256 * 1024;
/** How long a reader may take for that backlog; one more event does not extend it. */
const drainMs = 10_000;

/** Shared by all readers, of which there may be thousands. */
export interface EventReaderDeps {
  readonly events: EventsApi;
  /** Called when a reader falls behind. */
  readonly onBehind: () => void;
  readonly onFailure: (error: unknown, call: HttpCall) => void;
}

/**
 * One client of the event stream: a position in the log. While it keeps up it gets each event as it happens; when it
 * falls behind it reads on from its position, so that no more than `softBytes` and one event are ever buffered for it.
 */
export class EventReader {
  readonly #deps: EventReaderDeps;
  readonly #call: HttpCall;
  /** Only these kinds. */
  readonly #kinds: ReadonlySet<EventKind>;
  readonly #mayBeShown: ReturnType<EventsApi['viewOf']>;
  #at: number;
  #live = false;
  #reading = false;
  /** Since when it has read nothing, as first seen by `isStalled`. */
  #behindSinceMs: number | undefined;

  constructor(deps: EventReaderDeps, call: HttpCall, identity: Identity, kinds: ReadonlySet<EventKind>) {
    this.#deps = deps;
    this.#call = call;
    this.#kinds = kinds;
    this.#mayBeShown = deps.events.viewOf(identity);
    this.#at = deps.events.lastId();
    const { outgoing } = call;
    outgoing.on('drain', this.#onDrain);
    if (outgoing.socket === null) outgoing.once('socket', (socket) => socket.on('drain', this.#onDrain));
    else outgoing.socket.on('drain', this.#onDrain);
  }

  readonly #onDrain = (): void => {
    this.#behindSinceMs = undefined;
    if (!this.#live) void this.#readOn();
  };

  /** True while data waits for the client to read it. */
  get isBehind(): boolean {
    const { outgoing } = this.#call;
    return outgoing.writableNeedDrain || outgoing.socket?.writableNeedDrain === true;
  }

  /** Starts after `lastEventId`, or with the next event. */
  begin(lastEventId: number | undefined): void {
    const { events } = this.#deps;
    let opening = openingFrame(lastEventId === undefined ? this.#at : undefined);
    if (lastEventId !== undefined && lastEventId > this.#at) opening += gapFrame({ from: 0, to: this.#at, reason: 'unknown' });
    else if (lastEventId !== undefined) this.#at = lastEventId;
    // With the headers, in one write. As bytes: joined with text, node's headers stay a rope of fifty strings.
    this.#call.outgoing.write(Buffer.from(opening));
    this.#live = this.#at === events.lastId();
    if (!this.#live) void this.#readOn();
  }

  /** Takes an event as it happens; `frame` is shared by all readers. */
  hear(event: LoggedEvent, frame: () => Buffer): void {
    if (!this.#live) return;
    if (this.#shows(event)) {
      const { outgoing } = this.#call;
      if (outgoing.writableLength > softBytes) {
        // Readers that are behind skip transient events.
        this.#live = event.id === undefined;
        return;
      }
      this.#write(frame());
    }
    this.#at = event.id ?? this.#at;
  }

  /** A reader that has unread data needs no reminder. */
  ping(frame: string): void {
    const { outgoing } = this.#call;
    if (outgoing.writableLength === 0 && !outgoing.writableEnded) this.#write(Buffer.from(frame));
  }

  /** True when it has been too slow for the allowed time; checked once a second while it is behind. */
  isStalled(nowMs: number): boolean {
    const { outgoing } = this.#call;
    this.#behindSinceMs ??= nowMs;
    return nowMs - this.#behindSinceMs >= drainMs * Math.max(1, Math.floor(outgoing.writableLength / softBytes));
  }

  /** Ends the stream with a last frame; a reader that is behind is cut. */
  end(frame: string): void {
    this.#live = false;
    if (this.isBehind) this.cut();
    else this.#call.outgoing.end(frame);
  }

  cut(): void {
    this.#call.cut();
  }

  /** The body has no length and no chunks, so its bytes may go straight to the socket: going through the response costs as much as the write. */
  #write(bytes: Buffer): void {
    const { outgoing } = this.#call;
    if (!(outgoing.socket ?? outgoing).write(bytes)) this.#deps.onBehind();
  }

  #shows(event: LoggedEvent): boolean {
    return this.#kinds.has(event.kind) && this.#mayBeShown(event);
  }

  /** Reads the log page by page to its end; then, within the same tick, switches to live events. */
  async #readOn(): Promise<void> {
    if (this.#reading) return;
    this.#reading = true;
    const { events, onFailure } = this.#deps;
    const { outgoing } = this.#call;
    try {
      while (!outgoing.destroyed && !outgoing.writableEnded && outgoing.writableLength <= softBytes) {
        this.#live = this.#at >= events.lastId();
        if (this.#live) return;
        const page = events.after(this.#at);
        const { entries, next } = page instanceof Promise ? await page : page;
        const text = this.#framesOf(entries);
        if (text !== '' && !outgoing.writableEnded) this.#write(Buffer.from(text));
        this.#at = next;
      }
    } catch (error) {
      onFailure(error, this.#call);
      this.cut();
    } finally {
      this.#reading = false;
    }
  }

  #framesOf(entries: readonly (LoggedEvent | EventGap)[]): string {
    let text = '';
    let gap: EventGap | undefined;
    const close = (): void => {
      if (gap !== undefined) text += gapFrame(gap);
      gap = undefined;
    };
    for (const entry of entries) {
      const missing = missingIn(entry);
      if (!('reason' in entry) && !this.#shows(entry)) continue;
      if (missing !== undefined && gap?.reason === missing.reason) gap = { ...gap, to: missing.to };
      else {
        close();
        if (missing !== undefined) gap = missing;
        else if (!('reason' in entry)) text += eventFrame(entry);
      }
    }
    close();
    return text;
  }
}

/** Returns the gap that an entry stands for: it is a gap itself, or its payload was not kept. */
function missingIn(entry: LoggedEvent | EventGap): EventGap | undefined {
  if ('reason' in entry) return entry;
  return entry.json === undefined && entry.id !== undefined ? { from: entry.id, to: entry.id, reason: 'not_kept' } : undefined;
}
