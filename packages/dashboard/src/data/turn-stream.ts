import type { Client, EventStreamState } from '@gatehouse/client';
import type { EventKind } from '@gatehouse/contract';

/** Many events a second, which the general stream of the tab leaves out. */
const kinds = ['message:thinking', 'tool:output'] as const satisfies readonly EventKind[];
/** A turn decides at its start whether anybody wants these events, but it must not wait long for somebody who does. */
const openWithinMs = 500;
/** Turns that follow each other share a connection. */
const lingerMs = 5_000;

export interface TurnEvent {
  readonly kind: string;
  readonly payload: unknown;
}

/** Reasoning and output of commands, requested only while this tab waits for an answer; all turns share one connection. */
export class TurnStream {
  readonly #client: Pick<Client, 'events'>;
  readonly #listeners = new Set<(event: TurnEvent) => void>();
  #open: AbortController | undefined;
  #ready: Promise<void> = Promise.resolve();
  #closing: ReturnType<typeof setTimeout> | undefined;

  constructor(client: Pick<Client, 'events'>) {
    this.#client = client;
  }

  /** Calls `onEvent` for each event; returns a function that stops it. */
  follow(onEvent: (event: TurnEvent) => void): () => void {
    clearTimeout(this.#closing);
    this.#listeners.add(onEvent);
    if (this.#open === undefined) void this.#read();
    return () => {
      this.#listeners.delete(onEvent);
      if (this.#listeners.size === 0) this.#closing = setTimeout(() => this.close(), lingerMs);
    };
  }

  /** Resolves when events arrive, or after a moment without any. */
  ready(): Promise<void> {
    return Promise.race([this.#ready, new Promise<void>((resolve) => setTimeout(resolve, openWithinMs))]);
  }

  close(): void {
    clearTimeout(this.#closing);
    this.#open?.abort();
    this.#open = undefined;
  }

  async #read(): Promise<void> {
    const open = new AbortController();
    this.#open = open;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ready = promise;
    const onState = (state: EventStreamState): void => {
      if (state !== 'connecting') resolve();
    };
    try {
      for await (const event of this.#client.events({ kinds, signal: open.signal, onState })) for (const listener of this.#listeners) listener(event);
    } catch {
      // Answers are complete without it, and the general stream reports what is wrong with the connection.
    } finally {
      resolve();
      if (this.#open === open) this.#open = undefined;
    }
  }
}
