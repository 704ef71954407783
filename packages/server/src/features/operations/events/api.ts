import type { EventGap, EventKind } from '@gatehouse/contract';
import type { Identity } from '../../../kernel/call-context.ts';

/** An event for delivery: serialised once, for all its listeners. */
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

/** Part of the log, oldest first; `next` is the id to continue after. A gap marks missing events. */
export interface EventPage {
  readonly entries: readonly (LoggedEvent | EventGap)[];
  readonly next: number;
}

export interface EventFilter extends Pick<EventDigestQuery, 'beforeId' | 'untilMs' | 'limit'> {
  readonly kind?: EventKind | undefined;
  readonly sinceMs?: number | undefined;
}

export interface EventDigestQuery {
  /** Kinds to find, with the category under which each is counted. `isPublic`: every caller sees it. */
  readonly kinds: Readonly<Record<string, { readonly category: string; readonly isPublic: boolean }>>;
  readonly category: string | null;
  /** The principal that they belong to; anybody when null. */
  readonly owner: string | null;
  /** Only events of these agents; all when null. */
  readonly agentIds: readonly string[] | null;
  readonly afterId: number;
  /** Only events before this one. */
  readonly beforeId?: number | undefined;
  readonly sinceMs: number;
  /** The first millisecond that no longer counts. */
  readonly untilMs?: number | undefined;
  readonly limit: number;
  /** Events to read at most. */
  readonly maxRead: number;
}

export interface DigestedEvent {
  readonly id: number;
  readonly kind: string;
  readonly category: string;
  readonly atMs: number;
  readonly agentId: string | null;
  /** Empty where the payload was not kept. */
  readonly json: string;
}

export interface EventDigest {
  /** Newest first. */
  readonly events: readonly DigestedEvent[];
  readonly counts: Readonly<Record<string, number>>;
}

/** The event log: delivers events at once, and keeps them for a while so that clients can resume (decisions §4, stream resumption). */
export interface EventsApi {
  /** Id of the newest event. */
  lastId(): number;
  /** Delivers each event once, at once; transient kinds while somebody needs them. Returns a function that stops it. */
  follow(hear: (event: LoggedEvent) => void): () => void;
  /** Produces a transient kind until the returned function is called. */
  need(kind: EventKind): () => void;
  /** Returns events after `id`: synchronously while they are in memory, as the newest always are. A page is at most some hundred KB, unless one event is larger. */
  after(id: number): EventPage | Promise<EventPage>;
  /** Returns the newest events that the caller may see, oldest first, at most `limit`. */
  recent(identity: Identity, limit: number): Promise<readonly LoggedEvent[]>;
  /** Returns stored events that the caller may see, newest last; they are at most about a second behind. */
  find(identity: Identity, filter: EventFilter): Promise<readonly LoggedEvent[]>;
  /** Finds stored events, which are at most about a second behind. */
  digest(query: EventDigestQuery): Promise<EventDigest>;
  /** Returns a test for what a caller may see: its own conversations, or all for admins; never agents that its token does not name. */
  viewOf(identity: Identity): (event: Pick<LoggedEvent, 'kind' | 'owner' | 'agentId'>) => boolean;
}
