import { createError } from './errors.ts';

/** Longest event that is read; more without a blank line is not a stream of ours. */
const maxEventCharacters = 8_388_608;

/**
 * Reads an event stream (WHATWG HTML §9.2) and yields the data of each event. Comments and other fields are skipped;
 * characters split over two reads stay whole. Ends when the connection does; leaving the loop closes it.
 */
export async function* readEventStream(body: ReadableStream<Uint8Array>, idleTimeoutMs: number): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let pending = '';
  let data: string[] = [];
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await withIdleLimit(reader.read(), idleTimeoutMs);
      pending += done ? decoder.decode() : decoder.decode(value, { stream: true });
      const { lines, rest } = splitLines(pending, done);
      pending = rest;
      for (const line of lines) {
        if (line === '') {
          if (data.length > 0) yield data.join('\n');
          data = [];
          size = 0;
        } else if (line.startsWith('data:')) {
          data.push(line.slice(line.startsWith('data: ') ? 6 : 5));
          size += line.length;
        }
      }
      if (size + pending.length > maxEventCharacters)
        throw createError({ code: 'bad_reply', message: `The server sent an event of more than ${maxEventCharacters} characters.` });
      if (done) return;
    }
  } finally {
    // Fails when the connection is gone already, and there is nobody left to tell.
    await reader.cancel().catch(() => undefined);
  }
}

/** Lines end with LF, CRLF or CR; a CR at the very end may be the first half of a CRLF, so it waits. */
function splitLines(text: string, isLast: boolean): { lines: string[]; rest: string } {
  const held = !isLast && text.endsWith('\r') ? '\r' : '';
  const lines = text.slice(0, text.length - held.length).split(/\r\n|\n|\r/);
  const rest = (lines.pop() ?? '') + held;
  return { lines, rest };
}

/** The gateway sends a comment every 15 s, so silence means that the connection is dead. */
function withIdleLimit<T>(read: Promise<T>, idleTimeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(createError({ code: 'connection_failed', message: `The stream went silent for ${idleTimeoutMs} ms.` })),
      idleTimeoutMs,
    );
    read.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
