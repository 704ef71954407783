import type { EventGap, EventKind } from '@gatehouse/contract';
import type { Identity } from '../../../kernel/call-context.ts';

/** An event as it is handed on: serialised once, for everyone who hears it. */
export interface LoggedEvent {
  /** Grows, also over restarts; absent for kinds that are transient. */
  readonly id: number | undefined;
  readonly kind: EventKind;
  /** The principal that owner-visible events belong to. */
  readonly owner: string | undefined;
  readonly agentId: string | undefined;
  readonly atMs: number;
  /** The payload as JSON on one line; absent where it was not kept. */
  readonly json: string | undefined;
}

/** Part of the log, oldest first; `next` is the id to go on after. A gap stands where events are missing. */
export interface EventPage {
  readonly entries: readonly (LoggedEvent | EventGap)[];
  readonly next: number;
}

/** What happened: told as it happens, and kept for a while for those who come back (decisions §4, stream resumption). */
export interface EventsApi {
  /** Id of the newest event. */
  lastId(): number;
  /** Hears each event once, at once; transient kinds while somebody needs them. The returned function ends it. */
  follow(hear: (event: LoggedEvent) => void): () => void;
  /** Has a transient kind made until the returned function is called. */
  need(kind: EventKind): () => void;
  /** What is kept after `id`: at once while it is in memory, which is always so for the newest. A page of at most some hundred KB, unless one event is larger. */
  after(id: number): EventPage | Promise<EventPage>;
  /** The newest events that the caller may see, oldest first, at most `limit`. */
  recent(identity: Identity, limit: number): Promise<readonly LoggedEvent[]>;
  /** Tells what a caller may see: its own conversations, or all for admins; never another agent than those that its token names. */
  viewOf(identity: Identity): (event: Pick<LoggedEvent, 'kind' | 'owner' | 'agentId'>) => boolean;
}
