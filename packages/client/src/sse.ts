import { createError } from './errors.ts';

/** Longest event that is read; more without a blank line is not a stream of ours. */
const maxEventCharacters = 8_388_608;

/** One event of an event stream; `id` is the last one given up to here, empty when there was none. */
export interface StreamEvent {
  readonly type: string;
  readonly data: string;
  readonly id: string;
}

/** Where a stream stands, kept over its connections. */
export interface StreamPosition {
  lastEventId: string;
  /** Pause before the next connection that the server asked for by `retry`, in milliseconds. */
  retryMs: number | undefined;
}

export interface ReadOptions {
  /** Silence after which the connection counts as dead, in milliseconds. */
  readonly idleTimeoutMs: number;
  /** Moved on while events are read. */
  readonly position?: StreamPosition;
}

/**
 * Reads an event stream (WHATWG HTML §9.2) and yields its events. Comments are skipped, characters split over two reads
 * stay whole. Ends when the connection does; leaving the loop closes it.
 */
export async function* readEventStream(body: ReadableStream<Uint8Array>, options: ReadOptions): AsyncGenerator<StreamEvent, void, undefined> {
  const { idleTimeoutMs, position = { lastEventId: '', retryMs: undefined } } = options;
  const reader = body.getReader();
  // Takes a byte order mark at the beginning away, as it should.
  const decoder = new TextDecoder();
  const split = createLineSplitter();
  let type = '';
  let id = position.lastEventId;
  let data: string[] = [];
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await withIdleLimit(reader.read(), idleTimeoutMs);
      // What the end cuts off is no event.
      if (done) return;
      const { lines, pendingCharacters } = split(decoder.decode(value, { stream: true }));
      for (const line of lines) {
        if (line === '') {
          // Only now: what a broken connection cut off must come again.
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
    // Fails when the connection is gone already, and there is nobody left to tell.
    await reader.cancel().catch(() => undefined);
  }
}

function readField(line: string): [name: string, content: string] {
  const colon = line.indexOf(':');
  if (colon === -1) return [line, ''];
  const start = line.startsWith(': ', colon) ? colon + 2 : colon + 1;
  return [line.slice(0, colon), line.slice(start)];
}

/** Lines end with LF, CRLF or CR; an LF that begins a piece is the second half of the CRLF that ended the one before. */
function createLineSplitter(): (text: string) => { lines: string[]; pendingCharacters: number } {
  let pending = '';
  let endedWithCr = false;
  return (text) => {
    const fresh = endedWithCr && text.startsWith('\n') ? text.slice(1) : text;
    if (text !== '') endedWithCr = text.endsWith('\r');
    const lines = fresh.split(/\r\n|\n|\r/);
    const rest = lines.pop() ?? '';
    if (lines.length === 0) {
      // Only joined, never searched again: a long line in small pieces stays cheap.
      pending += rest;
      return { lines, pendingCharacters: pending.length };
    }
    lines[0] = pending + (lines[0] ?? '');
    pending = rest;
    return { lines, pendingCharacters: pending.length };
  };
}

/** The gateway sends something every 15 s, so silence means that the connection is dead. */
function withIdleLimit<T>(read: Promise<T>, idleTimeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(createError({ code: 'connection_failed', message: `The stream went silent for ${idleTimeoutMs} ms.` })),
      idleTimeoutMs,
    );
    read.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
