import { finished, type Readable } from 'node:stream';
import { constants as zlib, createBrotliDecompress, createGunzip } from 'node:zlib';
import type { Dispatcher } from 'undici';
import { AppError } from './app-error.ts';
import { createCheckedDial, type DialRules } from './checked-dial.ts';
import type { Clock } from './clock.ts';

export interface EgressRequest {
  readonly url: string;
  readonly method?: 'GET' | 'POST';
  /** Sent to the origin of `url` only: a redirect to another one drops all of them. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Limit for the body in bytes, as sent and as decompressed; the rest is cut off. */
  readonly maxBytes: number;
  /** Deadline for the whole request, redirects and body included. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Called before a redirect is followed; throws to refuse it. */
  readonly follow?: (to: URL) => void;
  /** Called before the body is read; throws to refuse it. */
  readonly accept?: (head: EgressHead) => void;
}

export interface EgressHead {
  /** The URL after all redirects. */
  readonly url: string;
  readonly status: number;
  /** Lower-case names; repeated headers joined by ", ". */
  readonly headers: Readonly<Record<string, string>>;
}

export interface EgressResponse extends EgressHead {
  readonly body: Buffer;
  /** The body was longer than `maxBytes`. */
  readonly truncated: boolean;
}

/**
 * Sends requests to addresses that somebody else chose. Only http and https, GET and POST, to public addresses: each address
 * of a name is checked and the checked one is dialled, at every hop. Fails with `denied` (address, port or
 * scheme), `invalid_params` (not a URL), `timeout`, `cancelled`, `payload_too_large` (compression bomb), `unavailable`.
 */
export interface Egress {
  request(request: EgressRequest): Promise<EgressResponse>;
}

export interface EgressOptions extends DialRules {
  readonly clock: Clock;
  readonly userAgent?: string;
}

const redirectStatuses = new Set([301, 302, 303, 307, 308]);
const maxRedirects = 3;
/** Small bodies may compress well; above this size a ratio over 100 is a bomb. */
const bombFloorBytes = 1024 * 1024;
const maxRatio = 100;
/** Headers that belong to the connection, to this module or to a proxy. */
const ownHeaders = /^(?:host|connection|content-length|transfer-encoding|te|trailer|upgrade|expect|keep-alive|accept-encoding|proxy-.*)$/i;

export function createEgress(options: EgressOptions): Egress {
  const dial = createCheckedDial(options);

  function parseTarget(text: string, base?: string): URL {
    const url = URL.parse(text, base);
    if (url === null) throw new AppError('invalid_params', 'Not a URL: expected http:// or https:// and a host', { param: 'url' });
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw refused(url, 'only http and https are allowed');
    if (url.username !== '' || url.password !== '') throw refused(url, 'a URL with credentials is not allowed');
    return url;
  }

  async function hop(
    url: URL,
    method: 'GET' | 'POST',
    headers: Record<string, string>,
    request: EgressRequest,
    deadline: Deadline,
  ): Promise<EgressResponse | { readonly location: string; readonly status: number }> {
    // Lazy: the first request that needs undici loads it.
    const { Client, buildConnector } = await import('./undici.ts');
    // A client for each hop: a pooled socket would outlive the check of its address and cost memory per host.
    const client = new Client(url.origin, {
      connect: dial.connector(buildConnector, Math.min(deadline.leftMs(), 10_000)),
      maxHeaderSize: 16_384,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    try {
      const response = await client.request({
        method,
        path: url.pathname + url.search,
        headers,
        body: method === 'POST' ? (request.body ?? null) : null,
        signal: deadline.signal,
      });
      // A body that is not read to its end is destroyed with the client and reports that as an error.
      response.body.on('error', () => {});
      const location = response.headers['location'];
      if (redirectStatuses.has(response.statusCode) && typeof location === 'string') return { location, status: response.statusCode };
      const head: EgressHead = { url: url.href, status: response.statusCode, headers: plainHeaders(response.headers) };
      request.accept?.(head);
      return { ...head, ...(await readBody(response, head, request.maxBytes)) };
    } finally {
      // A request that was cut off keeps its socket until then; nobody waits for it to close.
      void client.destroy().catch(() => {});
    }
  }

  return {
    async request(request) {
      using deadline = startDeadline(options.clock, request);
      let url = parseTarget(request.url);
      let method = request.method ?? 'GET';
      let own = Object.entries(request.headers ?? {}).filter(([name]) => !ownHeaders.test(name));
      try {
        for (let redirects = 0; ; redirects += 1) {
          const headers = { 'user-agent': options.userAgent ?? 'gatehouse', 'accept-encoding': 'gzip, br', ...Object.fromEntries(own) };
          const answer = await deadline.race(hop(url, method, headers, request, deadline));
          if ('body' in answer) return answer;
          if (redirects === maxRedirects) throw new AppError('unavailable', `More than ${maxRedirects} redirects`);
          const next = parseTarget(answer.location, url.href);
          request.follow?.(next);
          if (next.origin !== url.origin) own = [];
          // 307 and 308 repeat the request; a body is not sent to another origin.
          if (method === 'POST' && (answer.status < 307 || next.origin !== url.origin)) method = 'GET';
          if (method === 'GET') own = own.filter(([name]) => !/^content-/i.test(name));
          url = next;
        }
      } catch (error) {
        throw deadline.error() ?? toEgressError(error, url);
      }
    },
  };
}

function refused(url: URL, why: string): AppError {
  return new AppError('denied', `${url.protocol}//${url.host} is refused: ${why}`);
}

interface Deadline extends Disposable {
  readonly signal: AbortSignal;
  leftMs(): number;
  /** Settles with `work`, or fails at the deadline: a resolver cannot be aborted. */
  race<T>(work: Promise<T>): Promise<T>;
  error(): AppError | undefined;
}

function startDeadline(clock: Clock, request: EgressRequest): Deadline {
  const controller = new AbortController();
  const startedAt = clock.monotonic();
  let failure: AppError | undefined;
  const over = Promise.withResolvers<never>();
  over.promise.catch(() => {});
  const end = (error: AppError) => {
    failure ??= error;
    controller.abort(failure);
    over.reject(failure);
  };
  const onAbort = () => end(new AppError('cancelled', 'The request was aborted'));
  const cancel = clock.after(request.timeoutMs, () => end(new AppError('timeout', `No complete answer within ${request.timeoutMs} ms`)));
  if (request.signal.aborted) onAbort();
  else request.signal.addEventListener('abort', onAbort, { once: true });
  return {
    signal: controller.signal,
    leftMs: () => Math.max(1, request.timeoutMs - (clock.monotonic() - startedAt)),
    race: async (work) => {
      // The loser of the race must not become an unhandled rejection.
      work.catch(() => {});
      return Promise.race([work, over.promise]);
    },
    error: () => failure,
    [Symbol.dispose]() {
      cancel();
      request.signal.removeEventListener('abort', onAbort);
    },
  };
}

function plainHeaders(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const plain: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) plain[name] = typeof value === 'string' ? value : value.join(', ');
  }
  return plain;
}

/** Reads at most `maxBytes`, both compressed and decompressed. */
async function readBody(
  response: Dispatcher.ResponseData,
  head: EgressHead,
  maxBytes: number,
): Promise<{ readonly body: Buffer; readonly truncated: boolean }> {
  const encoding = (head.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  const unpack = createUnpacker(encoding);
  let wireBytes = 0;
  let bytes = 0;
  const chunks: Buffer[] = [];
  const source = unpack === undefined ? response.body : pump(response.body, unpack, (length) => (wireBytes += length));
  try {
    for await (const chunk of source) {
      if (!Buffer.isBuffer(chunk)) throw new TypeError('expected bytes');
      const remaining = maxBytes - bytes;
      bytes += chunk.length;
      if (unpack !== undefined && bytes > bombFloorBytes && bytes > wireBytes * maxRatio)
        throw new AppError('payload_too_large', `The compressed body of ${new URL(head.url).host} unpacks to more than ${maxRatio} times its size`);
      chunks.push(chunk.length > remaining ? chunk.subarray(0, remaining) : chunk);
      if (chunk.length > remaining) return { body: Buffer.concat(chunks), truncated: true };
    }
    return { body: Buffer.concat(chunks), truncated: false };
  } finally {
    unpack?.destroy();
    response.body.destroy();
  }
}

function createUnpacker(encoding: string) {
  // Sync flush: a body cut off in the middle still yields what arrived.
  if (encoding === 'gzip' || encoding === 'x-gzip') return createGunzip({ finishFlush: zlib.Z_SYNC_FLUSH, chunkSize: 65_536 });
  if (encoding === 'br') return createBrotliDecompress({ finishFlush: zlib.BROTLI_OPERATION_FLUSH, chunkSize: 65_536 });
  if (encoding === 'identity' || encoding === '') return undefined;
  // Only one requested encoding: stacked encodings multiply the ratio of a bomb.
  throw new AppError('unavailable', 'The answer has a content encoding that was not asked for');
}

function pump(
  body: Readable,
  unpack: ReturnType<typeof createGunzip> | ReturnType<typeof createBrotliDecompress>,
  onBytes: (length: number) => void,
): Readable {
  body.on('data', (chunk: Buffer) => onBytes(chunk.length));
  finished(body, (error) => {
    if (error != null) unpack.destroy(error);
  });
  return body.pipe(unpack);
}

function toEgressError(error: unknown, url: URL): AppError {
  if (error instanceof AppError) return error;
  if (error instanceof Error && error.cause instanceof AppError) return error.cause;
  return new AppError('unavailable', `No answer from ${url.host}`, { cause: error });
}
