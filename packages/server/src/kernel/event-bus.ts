import type { EventKind, EventPayload } from '@gatehouse/contract';

/** One event as listeners see it; `owner` is the principal that owner-visible events belong to. */
export interface BusEvent<K extends EventKind = EventKind> {
  readonly kind: K;
  readonly payload: EventPayload<K>;
  readonly owner?: string;
}

type Listener = (event: BusEvent) => void;

/** Announces what happened. Listeners run at once and must not block; one that throws is reported and the rest still run. */
export interface EventBus {
  emit<K extends EventKind>(kind: K, payload: EventPayload<K>, owner?: string): void;
  /** True when `kind` has a listener: producers of frequent events ask first. */
  wants(kind: EventKind): boolean;
  /** Listens to some kinds, or to all; the returned function unsubscribes. */
  listen(kinds: readonly EventKind[] | 'all', listener: Listener): () => void;
}

export function createEventBus(onListenerError: (error: unknown, kind: EventKind) => void): EventBus {
  const all = new Set<Listener>();
  const byKind = new Map<EventKind, Set<Listener>>();
  function listenersOf(kind: EventKind): Set<Listener> {
    let listeners = byKind.get(kind);
    if (listeners === undefined) byKind.set(kind, (listeners = new Set()));
    return listeners;
  }
  const wants = (kind: EventKind) => all.size > 0 || (byKind.get(kind)?.size ?? 0) > 0;
  return {
    wants,
    emit(kind, payload, owner) {
      if (!wants(kind)) return;
      const event: BusEvent = owner === undefined ? { kind, payload } : { kind, payload, owner };
      for (const listener of [...(byKind.get(kind) ?? []), ...all]) {
        try {
          listener(event);
        } catch (error) {
          onListenerError(error, kind);
        }
      }
    },
    listen(kinds, listener) {
      const sets = kinds === 'all' ? [all] : kinds.map(listenersOf);
      for (const set of sets) set.add(listener);
      return () => {
        for (const set of sets) set.delete(listener);
      };
    },
  };
}
