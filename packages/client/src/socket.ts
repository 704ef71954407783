import type { MethodName } from '@gatehouse/contract';
import { type Call, type CallOptions, readReply, type RpcRequestMessage } from './calls.ts';
import { createError, type GatehouseError } from './errors.ts';
import { type PendingCalls, createPendingCalls } from './pending-calls.ts';
import { readMethods } from './read-methods.ts';
import { backoffMs } from './retry.ts';

export type SocketState = 'connecting' | 'open' | 'waiting' | 'closed';

export interface SocketOptions {
  /** Base URL of the gateway, such as `http://127.0.0.1:4766`. */
  readonly url: string;
  readonly token: string;
  /** WebSocket implementation; default: the global one. */
  readonly WebSocket?: typeof WebSocket;
  /** First and longest delay before reconnecting, in milliseconds. */
  readonly initialDelayMs?: number;
  readonly maxDelayMs?: number;
  /** Whether to reconnect; with false, the first connection loss closes the socket. */
  readonly reconnect?: boolean;
  /** Called on each state change; `error` is the reason for `waiting` or `closed`. */
  readonly onState?: (state: SocketState, error?: GatehouseError) => void;
}

export interface GatehouseSocket {
  readonly state: SocketState;
  /**
   * Calls one method over the socket; waits while connecting. When the connection breaks, a call
   * that only reads is sent again over the next one, at most twice; any other fails with a ConnectionError.
   */
  readonly call: Call;
  /** Closes the socket permanently; pending calls fail. */
  close(): void;
  [Symbol.dispose](): void;
}

/** Time limit for one answer; turns may take ten minutes. */
const defaultTimeoutMs = 660_000;
const repeatsOfReads = 2;

/**
 * Connects to `/ws` and reconnects automatically with growing random delays. A close code from 4000 on is
 * final (4001 wrong token, 4003 missing scope): every call then fails with that reason.
 */
export function createSocket(options: SocketOptions): GatehouseSocket {
  const pending: PendingCalls = createPendingCalls();
  const Socket = options.WebSocket ?? WebSocket;
  let state: SocketState = 'connecting';
  let current: WebSocket | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;
  let finalError: GatehouseError | undefined;
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
    // Later calls wait for the next attempt.
    opening = Promise.withResolvers();
    // The connection never opened, so nothing was sent: calls that waited for it fail.
    if (wasOpen) pending.lose(error);
    else pending.rejectAll(error);
    timer = setTimeout(connect, backoffMs(failures, options.initialDelayMs ?? 500, options.maxDelayMs ?? 30_000));
    failures += 1;
    enter('waiting', error);
  }

  function end(error: GatehouseError): void {
    if (state === 'closed') return;
    finalError = error;
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
    if (finalError !== undefined) throw finalError;
    const repeats = readMethods.has(method) ? repeatsOfReads : 0;
    return await pending.add({ method, signal, timeoutMs, repeats }, async (id) => {
      const socket = await opening.promise;
      const message: RpcRequestMessage = { jsonrpc: '2.0', id, method, params };
      // A call that was abandoned while waiting for the connection must not be sent.
      if (pending.has(id)) socket.send(JSON.stringify(message));
    });
  }

  connect();
  return {
    get state() {
      return state;
    },
    // The only place where an answer gets its type: the server guarantees the contract of results.
    call: call as Call,
    close: () => end(createError({ code: 'connection_failed', message: 'The socket was closed here.' })),
    [Symbol.dispose]() {
      this.close();
    },
  };
}

/**
 * Sends the token as a subprotocol, which browsers support too; one with characters that a subprotocol can't have
 * goes into the query. The server selects the first name, so that the token is not sent back.
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
  const detail = reason === '' ? '' : `: ${reason.replace(/\.$/, '')}`;
  if (code === 4001) return createError({ code: 'unauthenticated', message: `The server refused the token${detail}.` });
  if (code === 4003) return createError({ code: 'insufficient_scope', message: `The token may not open a socket${detail}.` });
  if (code >= 4000) return createError({ code: 'denied', message: `The server closed the socket with code ${code}${detail}.` });
  if (code === 1009) return createError({ code: 'payload_too_large', message: `A message was larger than the server takes${detail}.` });
  if (!wasOpen) return createError({ code: 'connection_failed', message: `Cannot open a socket to ${url}${detail}.` });
  return createError({
    code: 'connection_failed',
    message: `The connection to ${url} was lost (code ${code})${detail}. Calls without an answer may or may not have taken effect.`,
  });
}
