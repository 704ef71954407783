import type { MethodName } from '@gatehouse/contract';
import { type Call, type CallOptions, readReply, type RpcRequestMessage } from './calls.ts';
import { createError, type GatehouseError } from './errors.ts';
import { type PendingCalls, createPendingCalls } from './pending-calls.ts';
import { readMethods } from './read-methods.ts';
import { backoffMs } from './retry.ts';

export type SocketState = 'connecting' | 'open' | 'waiting' | 'closed';

export interface SocketOptions {
  /** Where the gateway listens, such as `http://127.0.0.1:4766`. */
  readonly url: string;
  readonly token: string;
  /** The global one otherwise. */
  readonly WebSocket?: typeof WebSocket;
  /** First and longest pause before another connection is tried, in milliseconds. */
  readonly initialDelayMs?: number;
  readonly maxDelayMs?: number;
  /** False: the first loss of the connection is the end. */
  readonly reconnect?: boolean;
  /** Told of each change; `error` says what a `waiting` or `closed` socket has lost. */
  readonly onState?: (state: SocketState, error?: GatehouseError) => void;
}

export interface GatehouseSocket {
  readonly state: SocketState;
  /**
   * Calls one method over the socket; waits for the connection that is being made. When the connection breaks, a call
   * that only reads is sent again over the next one, at most twice; any other fails with a ConnectionError.
   */
  readonly call: Call;
  /** Ends the connection for good; calls still waiting fail. */
  close(): void;
  [Symbol.dispose](): void;
}

/** How long a socket waits for one answer; turns have ten minutes. */
const defaultTimeoutMs = 660_000;
const repeatsOfReads = 2;

/**
 * A connection to `/ws` that comes back by itself, with growing random pauses. A close code from 4000 on is the
 * server's last word (4001 wrong token, 4003 no scope): no return then, and every call fails with that reason.
 */
export function createSocket(options: SocketOptions): GatehouseSocket {
  const pending: PendingCalls = createPendingCalls();
  const Socket = options.WebSocket ?? WebSocket;
  let state: SocketState = 'connecting';
  let current: WebSocket | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;
  let lastWord: GatehouseError | undefined;
  let opening = Promise.withResolvers<WebSocket>();

  function enter(next: SocketState, error?: GatehouseError): void {
    state = next;
    if (error === undefined) options.onState?.(next);
    else options.onState?.(next, error);
  }

  function connect(): void {
    enter('connecting');
    const socket = openSocket(Socket, options);
    current = socket;
    socket.addEventListener('open', () => {
      failures = 0;
      opening.resolve(socket);
      enter('open');
    });
    socket.addEventListener('message', (event) => receive(pending, event.data));
    socket.addEventListener('close', (event) => {
      if (socket === current) lost(event.code, event.reason);
    });
  }

  function lost(code: number, reason: string): void {
    const wasOpen = state === 'open';
    const error = closeError(code, reason, { wasOpen, url: options.url });
    if (code >= 4000 || options.reconnect === false) return end(error);
    opening.promise.catch(() => undefined);
    opening.reject(error);
    // Calls made from here on wait for the next attempt.
    opening = Promise.withResolvers();
    // Where there was no connection nothing was lost on it: what waited for it fails.
    if (wasOpen) pending.lose(error);
    else pending.rejectAll(error);
    timer = setTimeout(connect, backoffMs(failures, options.initialDelayMs ?? 500, options.maxDelayMs ?? 30_000));
    failures += 1;
    enter('waiting', error);
  }

  function end(error: GatehouseError): void {
    if (state === 'closed') return;
    lastWord = error;
    clearTimeout(timer);
    pending.rejectAll(error);
    opening.promise.catch(() => undefined);
    opening.reject(error);
    const socket = current;
    current = undefined;
    socket?.close(1000);
    enter('closed', error);
  }

  async function call(method: MethodName, params: object = {}, { signal, timeoutMs = defaultTimeoutMs }: CallOptions = {}): Promise<unknown> {
    if (lastWord !== undefined) throw lastWord;
    const repeats = readMethods.has(method) ? repeatsOfReads : 0;
    return await pending.add({ method, signal, timeoutMs, repeats }, async (id) => {
      const socket = await opening.promise;
      const message: RpcRequestMessage = { jsonrpc: '2.0', id, method, params };
      // A call that was given up while it waited for the connection must not reach the server.
      if (pending.has(id)) socket.send(JSON.stringify(message));
    });
  }

  connect();
  return {
    get state() {
      return state;
    },
    // The one place where an answer gets its type: the server keeps the contract's promise about results.
    call: call as Call,
    close: () => end(createError({ code: 'connection_failed', message: 'The socket was closed here.' })),
    [Symbol.dispose]() {
      this.close();
    },
  };
}

/**
 * The token goes as a subprotocol, which browsers can send too; one with characters that a subprotocol may not have
 * goes in the query. The first name is there for the server to choose, so that the token is not sent back.
 */
function openSocket(Socket: typeof WebSocket, { url, token }: SocketOptions): WebSocket {
  const target = new URL(`${url.replace(/\/+$/, '').replace(/^http/, 'ws')}/ws`);
  if (/^[\w!#$%&'*+.^`|~-]+$/.test(token)) return new Socket(target, ['gatehouse', `bearer.${token}`]);
  target.searchParams.set('token', token);
  return new Socket(target);
}

function receive(pending: PendingCalls, data: unknown): void {
  if (typeof data !== 'string') return;
  let message: unknown;
  try {
    message = JSON.parse(data);
  } catch {
    return;
  }
  const { id, outcome } = readReply(message);
  if (typeof id === 'number') pending.settle(id, outcome);
}

function closeError(code: number, reason: string, { wasOpen, url }: { wasOpen: boolean; url: string }): GatehouseError {
  const words = reason === '' ? '' : `: ${reason.replace(/\.$/, '')}`;
  if (code === 4001) return createError({ code: 'unauthenticated', message: `The server refused the token${words}.` });
  if (code === 4003) return createError({ code: 'insufficient_scope', message: `The token may not open a socket${words}.` });
  if (code >= 4000) return createError({ code: 'denied', message: `The server closed the socket with code ${code}${words}.` });
  if (code === 1009) return createError({ code: 'payload_too_large', message: `A message was larger than the server takes${words}.` });
  if (!wasOpen) return createError({ code: 'connection_failed', message: `Cannot open a socket to ${url}${words}.` });
  return createError({
    code: 'connection_failed',
    message: `The connection to ${url} was lost (code ${code})${words}. Calls without an answer may or may not have taken effect.`,
  });
}
