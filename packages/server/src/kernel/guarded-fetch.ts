import type { Readable } from 'node:stream';
import type { Pool } from 'undici';
import { AppError } from './app-error.ts';
import { createCheckedDial, type DialRules } from './checked-dial.ts';

export interface GuardedFetchOptions extends DialRules {
  /** The only origin that may be reached, such as `https://mcp.example`. */
  readonly origin: string;
  /** Longest answer, and longest event of an answer that is a stream of events. */
  readonly maxBytes: number;
  /** Time limit for the head of an answer, and for each next chunk of one to a POST. A stream requested by GET may stay silent forever. */
  readonly timeoutMs: number;
  readonly maxConnections: number;
  /** Called with the length of every chunk that arrives; throws to cut the answer off. */
  readonly onBytes?: (length: number) => void;
}

/** `fetch` for libraries that implement a protocol but no safeguards: the owner of an address decides where it leads. */
export interface GuardedFetch extends AsyncDisposable {
  /**
   * Dials checked addresses only (`CheckedDial`), follows no redirect, accepts no compressed answer and limits what it
   * reads. Fails with `denied` for another origin or an address that may not be dialled.
   */
  fetch(url: string | URL, init?: RequestInit): Promise<Response>;
}

const withoutBody = new Set([204, 205, 304]);
/** Headers that belong to the connection or to a proxy. */
const ownHeaders = /^(?:host|connection|content-length|transfer-encoding|te|trailer|upgrade|expect|keep-alive|accept-encoding|proxy-.*)$/i;

export function createGuardedFetch(options: GuardedFetchOptions): GuardedFetch {
  const dial = createCheckedDial(options);
  let pool: Promise<Pool> | undefined;

  async function openPool(): Promise<Pool> {
    const { buildConnector, Pool: ConnectionPool } = await import('./undici.ts');
    return new ConnectionPool(options.origin, {
      connect: dial.connector(buildConnector, 10_000),
      connections: options.maxConnections,
      maxHeaderSize: 16_384,
      headersTimeout: options.timeoutMs,
    });
  }

  return {
    async fetch(url, init = {}) {
      const target = new URL(url);
      if (target.origin !== options.origin) throw new AppError('denied', `${target.origin} is refused: only ${options.origin} is reached`);
      const method = init.method ?? 'GET';
      if (method !== 'GET' && method !== 'POST' && method !== 'DELETE') throw new AppError('denied', `Method ${method} is not allowed`);
      if (init.body != null && typeof init.body !== 'string') throw new TypeError('expected a text as body');
      const headers = Object.fromEntries([...new Headers(init.headers)].filter(([name]) => !ownHeaders.test(name)));
      try {
        const answer = await (
          await (pool ??= openPool())
        ).request({
          method,
          path: target.pathname + target.search,
          headers: { 'user-agent': 'gatehouse', ...headers, 'accept-encoding': 'identity' },
          body: init.body ?? null,
          signal: init.signal ?? null,
          bodyTimeout: method === 'GET' ? 0 : options.timeoutMs,
        });
        answer.body.on('error', () => {});
        const received = new Headers();
        for (const [name, value] of Object.entries(answer.headers)) {
          for (const each of typeof value === 'string' ? [value] : (value ?? [])) received.append(name, each);
        }
        const status = answer.statusCode;
        if ((received.get('content-encoding') ?? 'identity') !== 'identity') {
          answer.body.destroy();
          throw new AppError('unavailable', 'The answer has a content encoding that was not asked for');
        }
        if (withoutBody.has(status)) {
          answer.body.destroy();
          return new Response(null, { status, headers: received });
        }
        const events = received.get('content-type')?.startsWith('text/event-stream') === true;
        return new Response(toStream(bounded(answer.body, options, events)), { status, headers: received });
      } catch (error) {
        if (init.signal?.aborted === true) throw error;
        throw error instanceof AppError ? error : error instanceof Error && error.cause instanceof AppError ? error.cause : noAnswer(target, error);
      }
    },
    async [Symbol.asyncDispose]() {
      const opened = await pool?.catch(() => undefined);
      await opened?.destroy().catch(() => {});
    },
  };
}

function noAnswer(target: URL, cause: unknown): AppError {
  return new AppError('unavailable', `No answer from ${target.host}`, { cause });
}

function toStream(pieces: AsyncGenerator<Uint8Array<ArrayBuffer>>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (done === true) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await pieces.return(undefined);
    },
  });
}

/** Limits the bytes held at once. In an event stream each complete event frees its bytes; in another body nothing does. */
async function* bounded(body: Readable, { maxBytes, onBytes }: GuardedFetchOptions, events: boolean): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let held = 0;
  let tail = '';
  try {
    for await (const chunk of body) {
      if (!isBytes(chunk)) throw new TypeError('expected bytes');
      onBytes?.(chunk.length);
      held += chunk.length;
      if (events) {
        const text = tail + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).toString('latin1');
        const end = Math.max(text.lastIndexOf('\n\n'), text.lastIndexOf('\r\n\r\n'), text.lastIndexOf('\r\r'));
        if (end >= 0) held = text.length - end;
        tail = text.slice(-3);
      }
      if (held > maxBytes) throw new AppError('payload_too_large', `The answer is longer than ${maxBytes} bytes`);
      yield chunk;
    }
  } finally {
    body.destroy();
  }
}

/** Narrows a chunk from a socket, which is always in memory of this process. */
function isBytes(chunk: unknown): chunk is Uint8Array<ArrayBuffer> {
  return chunk instanceof Uint8Array;
}
