import type { Client } from '@gatehouse/client';
import { eventKinds } from './event-kinds.ts';
import { createStore, type Store } from './store.ts';

/** One line of the feed: an event of the gateway, or a gap where events were missed. */
export interface FeedEntry {
  /** Counts up from 1 in this tab; negative for events from before. */
  readonly number: number;
  /** Absent for kinds that are not kept, and for gaps. */
  readonly id?: number | undefined;
  readonly kind: string;
  readonly payload: unknown;
  readonly atMs: number;
}

export interface LiveState {
  readonly connection: 'connecting' | 'open' | 'waiting' | 'refused';
  /** Oldest first, at most `maxEntries`. */
  readonly entries: readonly FeedEntry[];
}

export interface LiveEvents {
  readonly state: Store<LiveState>;
  /** Text deltas of answers are many, so they are requested only while shown. */
  readonly withStreaming: Store<boolean>;
  setStreaming(wanted: boolean): void;
  clear(): void;
  /** Calls `listener` for each event; returns a function that removes it. */
  listen(onEvent: (entry: FeedEntry) => void): () => void;
  close(): void;
}

const maxEntries = 1000;
/** Kinds with many events a second, which make every turn of the gateway a streamed one. */
const streamedKinds: ReadonlySet<string> = new Set(['message:streaming', 'message:thinking', 'tool:output']);

/** The event stream of this tab, shared by all pages. `onRefused` receives the reason when it ends for good. */
export function openLive(client: Client, onRefused: (error: unknown) => void): LiveEvents {
  const state = createStore<LiveState>({ connection: 'connecting', entries: [] });
  const withStreaming = createStore(false);
  const listeners = new Set<(entry: FeedEntry) => void>();
  const calmKinds = eventKinds.map(({ kind }) => kind).filter((kind) => !streamedKinds.has(kind));
  let current = new AbortController();
  let closed = false;
  let number = 0;
  let lastEventId: string | undefined;
  let waiting: FeedEntry[] = [];

  const connection = (next: LiveState['connection']) => state.set({ ...state.get(), connection: next });

  /** Batches events by time so that each batch causes one redraw. Uses a timer because a hidden page draws no frames. */
  function flush(): void {
    const entries = [...state.get().entries, ...waiting].slice(-maxEntries);
    waiting = [];
    state.set({ ...state.get(), entries });
  }

  async function read(signal: AbortSignal): Promise<void> {
    const events = client.events({
      signal,
      lastEventId,
      ...(!withStreaming.get() && { kinds: calmKinds }),
      onState: connection,
    });
    for await (const { kind, id, payload } of events) {
      number += 1;
      lastEventId = id ?? lastEventId;
      const entry: FeedEntry = {
        number,
        ...(id !== undefined && kind !== 'gap' && { id: Number(id) }),
        kind,
        payload,
        atMs: timestampOf(payload) ?? Date.now(),
      };
      if (waiting.length === 0) setTimeout(flush, 50);
      waiting.push(entry);
      if (waiting.length > maxEntries) waiting.shift();
      for (const listener of listeners) listener(entry);
    }
  }

  async function keepReading(): Promise<void> {
    while (!closed) {
      current = new AbortController();
      try {
        await read(current.signal);
      } catch (error) {
        // Aborted means reopened with other options, or closed. Anything else is permanent.
        if (current.signal.aborted) continue;
        connection('refused');
        onRefused(error);
        return;
      }
    }
  }
  void keepReading();

  return {
    state,
    withStreaming,
    setStreaming(wanted) {
      if (withStreaming.get() === wanted) return;
      withStreaming.set(wanted);
      current.abort();
    },
    clear: () => state.set({ ...state.get(), entries: [] }),
    listen(onEvent) {
      listeners.add(onEvent);
      return () => listeners.delete(onEvent);
    },
    close() {
      closed = true;
      current.abort();
    },
  };
}

function timestampOf(payload: unknown): number | undefined {
  const stamp = typeof payload === 'object' && payload !== null && 'timestamp' in payload ? payload.timestamp : undefined;
  return typeof stamp === 'number' ? stamp : undefined;
}
