import { createError } from './errors.ts';

/** Maximum length of an event; a longer one is not from this server. */
const maxEventCharacters = 8_388_608;

/** An event of an event stream; `id` is the last id received so far, or empty. */
export interface StreamEvent {
  readonly type: string;
  readonly data: string;
  readonly id: string;
}

/** The position in a stream, kept across connections. */
export interface StreamPosition {
  lastEventId: string;
  /** Reconnection delay requested by the server with `retry`, in milliseconds. */
  retryMs: number | undefined;
}

export interface ReadOptions {
  /** Idle timeout of the connection in milliseconds. */
  readonly idleTimeoutMs: number;
  /** Updated while events are read. */
  readonly position?: StreamPosition;
}

/**
 * Reads an event stream (WHATWG HTML §9.2) and yields its events. Skips comments and joins characters split over two
 * reads. Ends with the connection; leaving the loop closes it.
 */
export async function* readEventStream(body: ReadableStream<Uint8Array>, options: ReadOptions): AsyncGenerator<StreamEvent, void, undefined> {
  const { idleTimeoutMs, position = { lastEventId: '', retryMs: undefined } } = options;
  const reader = body.getReader();
  // Also removes a byte order mark at the beginning.
  const decoder = new TextDecoder();
  const split = createLineSplitter();
  let type = '';
  let id = position.lastEventId;
  let data: string[] = [];
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await withIdleLimit(reader.read(), idleTimeoutMs);
      // An incomplete event at the end is dropped.
      if (done) return;
      const { lines, pendingCharacters } = split(decoder.decode(value, { stream: true }));
      for (const line of lines) {
        if (line === '') {
          // Updated only now, so that an incomplete event is sent again.
          position.lastEventId = id;
          if (data.length > 0) yield { type: type === '' ? 'message' : type, data: data.join('\n'), id };
          type = '';
          data = [];
          size = 0;
          continue;
        }
        const [name, content] = readField(line);
        size += line.length;
        if (name === 'data') data.push(content);
        else if (name === 'event') type = content;
        else if (name === 'id' && !content.includes('\0')) id = content;
        else if (name === 'retry' && /^\d{1,9}$/.test(content)) position.retryMs = Number(content);
      }
      if (size + pendingCharacters > maxEventCharacters)
        throw createError({ code: 'bad_reply', message: `The server sent an event of more than ${maxEventCharacters} characters.` });
    }
  } finally {
    // Fails when the connection is already closed, which can be ignored.
    await reader.cancel().catch(() => undefined);
  }
}

function readField(line: string): [name: string, content: string] {
  const colon = line.indexOf(':');
  if (colon === -1) return [line, ''];
  const start = line.startsWith(': ', colon) ? colon + 2 : colon + 1;
  return [line.slice(0, colon), line.slice(start)];
}

/** Splits lines at LF, CRLF or CR; an LF at the start of a chunk may complete a CRLF of the previous chunk. */
function createLineSplitter(): (text: string) => { lines: string[]; pendingCharacters: number } {
  let pending = '';
  let endedWithCr = false;
  return (text) => {
    const fresh = endedWithCr && text.startsWith('\n') ? text.slice(1) : text;
    if (text !== '') endedWithCr = text.endsWith('\r');
    const lines = fresh.split(/\r\n|\n|\r/);
    const rest = lines.pop() ?? '';
    if (lines.length === 0) {
      // Joined once and never searched again, so that a long line in small chunks stays cheap.
      pending += rest;
      return { lines, pendingCharacters: pending.length };
    }
    lines[0] = pending + (lines[0] ?? '');
    pending = rest;
    return { lines, pendingCharacters: pending.length };
  };
}

/** Fails when nothing arrives in time: the gateway sends something every 15 s. */
function withIdleLimit<T>(read: Promise<T>, idleTimeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(createError({ code: 'connection_failed', message: `The stream went silent for ${idleTimeoutMs} ms.` })),
      idleTimeoutMs,
    );
    read.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
