import { createError, GatehouseError } from './errors.ts';
import { errorFromHttp, type ReplyContext } from './wire.ts';

/** The subset of the global `fetch` that the client uses. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface HttpOptions {
  /** Base URL of the gateway, such as `http://127.0.0.1:4766`. */
  readonly url: string;
  /** Access token; optional only where the server requires none (health, the owner-only socket). */
  readonly token?: string | undefined;
  readonly fetch?: Fetch | undefined;
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Path with the query, if any. */
  readonly path: string;
  /** Body sent as JSON. */
  readonly body?: unknown;
  /** Raw body instead of `body`; set its type in `headers`. */
  readonly bytes?: Blob | Uint8Array<ArrayBuffer> | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Time limit for the whole response in milliseconds; for a stream, for its head. */
  readonly timeoutMs: number;
}

export interface Http {
  /** Sends a request and reads the whole response; an error status throws the matching error. */
  json(request: HttpRequest): Promise<HttpAnswer>;
  /** Sends a request and returns the response with its body unread; the time limit covers the head. */
  open(request: HttpRequest): Promise<OpenAnswer>;
}

export interface HttpAnswer {
  readonly status: number;
  /** Parsed body; undefined when empty. */
  readonly body: unknown;
}

export interface OpenAnswer {
  readonly response: Response;
  /** Converts an error while reading the body into the error to throw. */
  readonly toFailure: (error: unknown) => unknown;
}

/** Creates the HTTP layer, which sends the token. Connection failures throw ConnectionError or TimeoutError, an abort throws the signal's reason. */
export function createHttp(options: HttpOptions): Http {
  const base = options.url.replace(/\/+$/, '');
  // Called without a receiver: browsers reject `fetch` with another `this`.
  const send: Fetch = options.fetch ?? ((url, init) => fetch(url, init));

  async function exchange<T>(request: HttpRequest, read: (response: Response, toFailure: (error: unknown) => unknown) => Promise<T>): Promise<T> {
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), request.timeoutMs);
    const toFailure = (error: unknown) => failureOf(error, { request, deadline: deadline.signal, where: base });
    try {
      const response = await send(base + request.path, {
        method: request.method,
        headers: {
          ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
          ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
          ...request.headers,
        },
        ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
        ...(request.bytes === undefined ? {} : { body: request.bytes }),
        signal: request.signal === undefined ? deadline.signal : AbortSignal.any([request.signal, deadline.signal]),
        // A redirect would send the token to another address.
        redirect: 'error',
      });
      return await read(response, toFailure);
    } catch (error) {
      throw toFailure(error);
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    json: (request) => exchange(request, async (response) => ({ status: response.status, body: await readBody(response) })),
    open: (request) =>
      exchange(request, async (response, toFailure) => {
        if (!response.ok) await readBody(response);
        return { response, toFailure };
      }),
  };
}

interface FailureContext {
  readonly request: HttpRequest;
  readonly deadline: AbortSignal;
  readonly where: string;
}

function failureOf(error: unknown, { request, deadline, where }: FailureContext): unknown {
  if (error instanceof GatehouseError) return error;
  if (request.signal?.aborted === true) return request.signal.reason;
  if (deadline.aborted)
    return createError({ code: 'client_timeout', message: `No response from ${where} within ${request.timeoutMs} ms.`, cause: error });
  const reason = deepestMessage(error);
  return createError({ code: 'connection_failed', message: `The connection to ${where} failed${reason === '' ? '' : `: ${reason}`}.`, cause: error });
}

/** Returns the innermost message: `fetch` hides "connect ECONNREFUSED …" in the cause of its "fetch failed". */
function deepestMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof AggregateError && error.errors.length > 0) return deepestMessage(error.errors[0]);
  if (error.cause instanceof Error) return deepestMessage(error.cause);
  return error.message.replace(/\.$/, '');
}

async function readBody(response: Response): Promise<unknown> {
  const text = await response.text();
  const body = parse(text);
  if (!response.ok) throw errorFromHttp(body?.value, replyContext(response));
  if (body === undefined && text !== '')
    throw createError({
      ...replyContext(response),
      code: 'bad_reply',
      message: `The server answered ${response.status} with something that is not JSON.`,
    });
  return body?.value;
}

function parse(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

export function replyContext(response: Response): ReplyContext & { httpStatus: number } {
  return {
    httpStatus: response.status,
    requestId: response.headers.get('x-request-id') ?? undefined,
    retryAfterMs: retryAfter(response.headers.get('retry-after')),
  };
}

/** Parses Retry-After in seconds, as sent by the gateway; ignores the date form of RFC 9110. */
function retryAfter(header: string | null): number | undefined {
  const seconds = header === null ? Number.NaN : Number(header);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : undefined;
}
