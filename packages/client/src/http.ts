import { createError, GatehouseError } from './errors.ts';
import { errorFromHttp, type ReplyContext } from './wire.ts';

/** The part of the global `fetch` that the client uses. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface HttpOptions {
  /** Where the gateway listens, such as `http://127.0.0.1:4766`. */
  readonly url: string;
  /** Absent only where the server asks for none (health, the owner-only socket). */
  readonly token?: string | undefined;
  readonly fetch?: Fetch | undefined;
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** With the query, if any. */
  readonly path: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as it is, in place of `body`; its type is a header. */
  readonly bytes?: Blob | Uint8Array<ArrayBuffer> | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
  /** Until the whole answer is there, in milliseconds; for a stream until its head is. */
  readonly timeoutMs: number;
}

export interface Http {
  /** Sends and reads the whole answer; a failed status throws the error that it stands for. */
  json(request: HttpRequest): Promise<HttpAnswer>;
  /** Sends and returns the answer with its body unread; the time limit ends with the head. */
  open(request: HttpRequest): Promise<OpenAnswer>;
}

export interface HttpAnswer {
  readonly status: number;
  /** Undefined for an empty body. */
  readonly body: unknown;
}

export interface OpenAnswer {
  readonly response: Response;
  /** Turns what a read of the body threw into the error to throw. */
  readonly toFailure: (error: unknown) => unknown;
}

/** Sends requests with the token. No answer becomes a ConnectionError or TimeoutError, an abort throws the signal's reason. */
export function createHttp(options: HttpOptions): Http {
  const base = options.url.replace(/\/+$/, '');
  // Called as a bare function: browsers refuse `fetch` with another `this`.
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
        // A redirect would carry the token to a place nobody configured.
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
    return createError({ code: 'client_timeout', message: `No answer from ${where} within ${request.timeoutMs} ms.`, cause: error });
  const reason = deepestMessage(error);
  return createError({ code: 'connection_failed', message: `The connection to ${where} failed${reason === '' ? '' : `: ${reason}`}.`, cause: error });
}

/** `fetch` hides the interesting part ("connect ECONNREFUSED …") in the cause of its "fetch failed". */
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

/** The gateway gives seconds; the date form of RFC 9110 is left to the caller's own backoff. */
function retryAfter(header: string | null): number | undefined {
  const seconds = header === null ? Number.NaN : Number(header);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : undefined;
}
