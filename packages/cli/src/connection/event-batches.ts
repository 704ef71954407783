import type { Client, EventsOptions, GapEvent, ServerEvent } from '@gatehouse/client';

type SomeEvent = ServerEvent | GapEvent;

/**
 * Yields events in batches, each with all events that arrived while the reader was busy. The first batch is empty and comes when the
 * stream is open, so that data loaded then misses no later event. Ends when the reader does, and throws the reason of
 * `signal`.
 */
export async function* eventBatches(client: Client, kinds: EventsOptions['kinds'], signal: AbortSignal): AsyncGenerator<readonly SomeEvent[], never> {
  const own = new AbortController();
  let waiting: SomeEvent[] = [];
  let failure: { readonly error: unknown } | undefined;
  let isOpen = false;
  let wake = Promise.withResolvers<void>();
  const onState: EventsOptions['onState'] = (state, error) => {
    if (state === 'open' && !isOpen) {
      isOpen = true;
      wake.resolve();
    }
    // Fails at once if the first connection fails, instead of retrying.
    if (state === 'waiting' && !isOpen && error !== undefined) own.abort(error);
  };
  const read = async (): Promise<void> => {
    for await (const event of client.events({ kinds, onState, signal: AbortSignal.any([signal, own.signal]) })) {
      waiting.push(event);
      wake.resolve();
    }
  };
  read().catch((error: unknown) => {
    failure = { error };
    wake.resolve();
  });
  try {
    for (;;) {
      await wake.promise;
      wake = Promise.withResolvers();
      if (failure !== undefined) throw failure.error;
      const batch = waiting;
      waiting = [];
      yield batch;
    }
  } finally {
    own.abort();
  }
}
