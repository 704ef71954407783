import { createParser } from 'eventsource-parser';

export interface HeardFrame {
  readonly id: string | undefined;
  readonly event: string | undefined;
  readonly data: unknown;
}

/** Reads an event stream as a third-party client does; `close` it, or it lasts as long as its server. */
export async function openEvents(url: string, token: string, options: { readonly query?: string; readonly lastEventId?: string } = {}) {
  const gone = new AbortController();
  const response = await fetch(`${url}/api/events${options.query ?? ''}`, {
    headers: { authorization: `Bearer ${token}`, ...(options.lastEventId !== undefined && { 'last-event-id': options.lastEventId }) },
    signal: gone.signal,
  });
  const frames: HeardFrame[] = [];
  const stream = {
    response,
    frames,
    text: '',
    /** The id that a client sends to continue from here. */
    lastEventId: options.lastEventId ?? '',
    retryMs: undefined as number | undefined,
    ended: false,
    kinds: (): (string | undefined)[] => frames.map(({ event }) => event),
    close: () => gone.abort(),
    [Symbol.dispose]: () => gone.abort(),
  };
  const parser = createParser({
    onEvent: ({ id, event, data }) => frames.push({ id, event, data: JSON.parse(data) }),
    onRetry: (ms) => (stream.retryMs = ms),
    onId: (id) => (stream.lastEventId = id),
  });
  async function read(): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for await (const chunk of response.body ?? []) {
        const text = decoder.decode(chunk, { stream: true });
        stream.text += text;
        parser.feed(text);
      }
    } catch {
      // Closed from here, or cut by the server.
    }
    stream.ended = true;
  }
  void read();
  return stream;
}
