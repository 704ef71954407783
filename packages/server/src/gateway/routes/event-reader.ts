import type { EventGap, EventKind } from '@gatehouse/contract';
import type { EventsApi, LoggedEvent } from '../../features/operations/events/api.ts';
import type { Identity } from '../../kernel/call-context.ts';
import type { HttpCall } from '../http-call.ts';
import { eventFrame, gapFrame, openingFrame } from './event-frames.ts';

/** Above this no more is written to a reader until it took what waits for it: what it misses meanwhile it gets from the log. */
const softBytes = 256 * 1024;
/** How long a reader may take for that much; one event more does not lengthen it. */
const drainMs = 10_000;

/** Shared by all readers, of which there may be thousands. */
export interface EventReaderDeps {
  readonly events: EventsApi;
  /** Told when a reader takes less than it is given. */
  readonly onBehind: () => void;
  readonly onFailure: (error: unknown, call: HttpCall) => void;
}

/**
 * One client of the event stream: a place in the log. While it keeps up it is handed each event as it happens; when it
 * falls behind it reads on from its place, so that no more than `softBytes` and one event ever wait for it.
 */
export class EventReader {
  readonly #deps: EventReaderDeps;
  readonly #call: HttpCall;
  /** Only these; all when absent. */
  readonly #kinds: ReadonlySet<EventKind> | undefined;
  readonly #mayBeShown: ReturnType<EventsApi['viewOf']>;
  #at: number;
  #live = false;
  #reading = false;
  /** Since when it took nothing, as `isStalled` saw it first. */
  #behindSinceMs: number | undefined;

  constructor(deps: EventReaderDeps, call: HttpCall, identity: Identity, kinds: ReadonlySet<EventKind> | undefined) {
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

  /** True while something waits for the client to take it. */
  get isBehind(): boolean {
    const { outgoing } = this.#call;
    return outgoing.writableNeedDrain || outgoing.socket?.writableNeedDrain === true;
  }

  /** Begins with what came after `lastEventId`, or with now. */
  begin(lastEventId: number | undefined): void {
    const { events } = this.#deps;
    let opening = openingFrame(lastEventId === undefined ? this.#at : undefined);
    if (lastEventId !== undefined && lastEventId > this.#at) opening += gapFrame({ from: 0, to: this.#at, reason: 'unknown' });
    else if (lastEventId !== undefined) this.#at = lastEventId;
    // With the headers, in one write. As bytes: joined with text, node's headers stay the fifty pieces that they were made of.
    this.#call.outgoing.write(Buffer.from(opening));
    this.#live = this.#at === events.lastId();
    if (!this.#live) void this.#readOn();
  }

  /** Takes an event as it happens; `frame` is the same for all readers. */
  hear(event: LoggedEvent, frame: () => Buffer): void {
    if (!this.#live) return;
    if (this.#shows(event)) {
      const { outgoing } = this.#call;
      if (outgoing.writableLength > softBytes) {
        // A transient event is passed over by those who are behind.
        this.#live = event.id === undefined;
        return;
      }
      this.#write(frame());
    }
    this.#at = event.id ?? this.#at;
  }

  /** One that has not even taken what came before needs no reminder. */
  ping(frame: string): void {
    const { outgoing } = this.#call;
    if (outgoing.writableLength === 0 && !outgoing.writableEnded) this.#write(Buffer.from(frame));
  }

  /** True when it is too slow for the time it had; asked once a second while it is behind. */
  isStalled(nowMs: number): boolean {
    const { outgoing } = this.#call;
    this.#behindSinceMs ??= nowMs;
    return nowMs - this.#behindSinceMs >= drainMs * Math.max(1, Math.floor(outgoing.writableLength / softBytes));
  }

  /** Ends the stream with a last frame; one that is behind is cut. */
  end(frame: string): void {
    this.#live = false;
    if (this.isBehind) this.cut();
    else this.#call.outgoing.end(frame);
  }

  cut(): void {
    this.#call.cut();
  }

  /** The body has no length and no chunks, so its bytes may go straight to the socket: the detour by the response costs as much as the write. */
  #write(bytes: Buffer): void {
    const { outgoing } = this.#call;
    if (!(outgoing.socket ?? outgoing).write(bytes)) this.#deps.onBehind();
  }

  #shows(event: LoggedEvent): boolean {
    return (this.#kinds === undefined || this.#kinds.has(event.kind)) && this.#mayBeShown(event);
  }

  /** From the log, page by page, until there is no more: then, within the same tick, what happens is heard again. */
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

/** What an entry leaves out: it is a gap itself, or its payload was not kept. */
function missingIn(entry: LoggedEvent | EventGap): EventGap | undefined {
  if ('reason' in entry) return entry;
  return entry.json === undefined && entry.id !== undefined ? { from: entry.id, to: entry.id, reason: 'not_kept' } : undefined;
}
