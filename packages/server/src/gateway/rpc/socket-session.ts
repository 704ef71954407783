import type { RpcReply } from '@gatehouse/contract';
import type { RawData, WebSocket } from 'ws';
import type { TokensApi } from '../../features/access/tokens/api.ts';
import { newTraceId } from '../../kernel/ids.ts';
import { AppError } from '../../kernel/app-error.ts';
import type { CallContext, Identity } from '../../kernel/call-context.ts';
import type { Clock } from '../../kernel/clock.ts';
import { RateLimiter } from '../../kernel/limiter.ts';
import { rpcFailure } from '../error-body.ts';
import { answer, cancelledId, type Dispatch, maxBatch, replyId } from './dispatch.ts';
import { parseMessages } from './parse-messages.ts';

/** Bytes of unread replies above which no further message is handled, and above which replies wait to be written. */
const softBytes = 256 * 1024;
const hardBytes = 1024 * 1024;
/** How long a client may leave its replies unread. */
const drainMs = 10_000;
const noRequestId = 'none';

/** Shared by all sockets, of which there may be thousands. */
export interface SocketSessionDeps {
  readonly dispatch: Dispatch;
  readonly tokens: TokensApi;
  readonly clock: Clock;
  /** Counts a message for the limits of its token and person; returns a refusal. */
  readonly refusalOf?: ((tokenId: string) => AppError | undefined) | undefined;
  readonly limits: () => { readonly maxInFlight: number; readonly maxMessages: number; readonly windowMs: number };
}

/** The identity that opened the socket, and its address. */
export interface SocketPeer {
  readonly tokenId: string;
  readonly remoteAddress: string;
}

/** One open socket: its limiter, its running calls, and its unread replies, each bounded. A socket that only listens has none of them. */
export class SocketSession {
  readonly tokenId: string;
  readonly #remoteAddress: string;
  readonly #socket: WebSocket;
  readonly #deps: SocketSessionDeps;
  #messages: RateLimiter | undefined;
  #refusals: RateLimiter | undefined;
  /** One per running call; the value is the call's id, by which its client may cancel it. */
  readonly #running = new Map<AbortController, RpcReply['id'] | undefined>();
  #closing: { readonly code: number; readonly reason: string } | undefined;
  #alive = true;
  /** True while the client has not read its replies. */
  #blocked = false;
  /** Frames that had already been read from the socket when it fell behind. */
  #held: { readonly data: RawData; readonly isBinary: boolean }[] = [];
  #waiting: (() => void)[] = [];
  #cancelDrain: (() => void) | undefined;
  #cancelClose: (() => void) | undefined;

  constructor(socket: WebSocket, deps: SocketSessionDeps, { tokenId, remoteAddress }: SocketPeer) {
    this.#socket = socket;
    this.#deps = deps;
    this.tokenId = tokenId;
    this.#remoteAddress = remoteAddress;
  }

  /** Handles one frame. Checks the token again: it may have been revoked, or narrowed, since the last one. */
  async receive(data: RawData, isBinary: boolean): Promise<void> {
    if (this.#blocked) {
      this.#held.push({ data, isBinary });
      return;
    }
    const identity = this.#deps.tokens.current(this.tokenId);
    if (identity === undefined) {
      this.finish(4001, 'Unauthorized', 2_000);
      return;
    }
    const reply = await this.#replyTo(data, isBinary, identity);
    if (reply !== undefined) {
      if (this.#socket.bufferedAmount > hardBytes) await new Promise<void>((resolve) => this.#waiting.push(resolve));
      this.#write(JSON.stringify(reply));
    }
    if (this.#closing !== undefined && this.#running.size === 0) this.#close();
  }

  /** Answers running calls, refuses new ones, then closes; after `withinMs` in any case. */
  finish(code: number, reason: string, withinMs?: number): void {
    this.#closing ??= { code, reason };
    if (this.#running.size === 0) this.#close();
    else if (withinMs !== undefined) this.#cancelClose ??= this.#deps.clock.after(withinMs, () => this.#close());
  }

  /** Aborts the running calls, so that they fail with `reason`; their replies are still sent. */
  abort(reason: AppError): void {
    for (const controller of this.#running.keys()) controller.abort(reason);
  }

  /** Sends a ping, or cuts a peer that left the last one unanswered. A peer that still reads replies is alive. */
  ping(): void {
    if (!this.#alive && !this.#socket.isPaused) {
      this.#socket.terminate();
      return;
    }
    this.#alive = false;
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping();
  }

  alive(): void {
    this.#alive = true;
  }

  terminate(): void {
    this.#socket.terminate();
  }

  dispose(): void {
    this.#cancelDrain?.();
    this.#cancelClose?.();
    this.#held = [];
    for (const wake of this.#waiting.splice(0)) wake();
    for (const controller of this.#running.keys()) controller.abort();
  }

  /** Returns the features' view of one call. */
  #context(identity: Identity, signal: AbortSignal): CallContext {
    const id = newTraceId();
    return {
      identity,
      traceId: id,
      requestId: `req_${id}`,
      signal,
      transport: 'websocket',
      remoteAddress: this.#remoteAddress,
    };
  }

  async #replyTo(data: RawData, isBinary: boolean, identity: Identity): Promise<RpcReply | RpcReply[] | undefined> {
    let payload: unknown;
    try {
      if (isBinary) throw new AppError('parse_error', 'Frames must be text');
      payload = parseMessages(textOf(data));
    } catch (error) {
      return this.#admit(null) ?? rpcFailure(error, noRequestId);
    }
    // A batch that is refused as a whole counts once; its entries are never examined.
    const refused = Array.isArray(payload) && (payload.length === 0 || payload.length > maxBatch) ? this.#admit(null) : undefined;
    return refused ?? answer(payload, noRequestId, (message) => this.#one(message, identity));
  }

  async #one(message: unknown, identity: Identity): Promise<RpcReply | undefined> {
    const id = replyId(message);
    const cancelled = cancelledId(message);
    const refused = this.#admit(id, cancelled !== undefined);
    if (refused !== undefined) return id === undefined ? undefined : refused;
    if (cancelled !== undefined) return this.#cancel(cancelled);
    const controller = new AbortController();
    this.#running.set(controller, id);
    try {
      return await this.#deps.dispatch(message, this.#context(identity, controller.signal));
    } finally {
      this.#running.delete(controller);
    }
  }

  /** Aborts the running calls of an id; they still get their reply. Ignores an id without running calls: its reply was already sent. */
  #cancel(cancelled: RpcReply['id']): undefined {
    for (const [controller, id] of this.#running) if (id === cancelled) controller.abort();
  }

  /** Returns the reply that refuses one more message; undefined when it may run. Silence would leave the client hanging. */
  #admit(id: RpcReply['id'] | undefined, isCancel = false): RpcReply | undefined {
    const { clock, limits } = this.#deps;
    const limit = () => limits().maxMessages;
    const windowMs = () => limits().windowMs;
    this.#messages ??= new RateLimiter({ limit, windowMs, slides: true, clock });
    const { allowed, resetMs } = this.#messages.take(this.tokenId);
    if (!allowed) {
      this.#refusals ??= new RateLimiter({ limit: () => Math.max(10, limit()), windowMs, slides: true, clock });
      if (!this.#refusals.take(this.tokenId).allowed) this.finish(1008, 'Rate limit exceeded', 0);
      return rpcFailure(new AppError('rate_limited', 'Rate limit exceeded', { retryAfterMs: resetMs }), noRequestId, id ?? null);
    }
    const refusal = isCancel ? undefined : this.#deps.refusalOf?.(this.tokenId);
    if (refusal !== undefined) return rpcFailure(refusal, noRequestId, id ?? null);
    if (this.#closing !== undefined) return rpcFailure(new AppError('unavailable', 'The connection is being closed'), noRequestId, id ?? null);
    if (!isCancel && this.#running.size >= limits().maxInFlight) {
      return rpcFailure(
        new AppError('rate_limited', `More than ${limits().maxInFlight} calls are running on this connection`, { retryAfterMs: 1_000 }),
        noRequestId,
        id ?? null,
      );
    }
    return undefined;
  }

  #write(text: string): void {
    const socket = this.#socket;
    if (socket.readyState !== socket.OPEN) return;
    socket.send(text, this.#onWritten);
    if (this.#blocked || socket.bufferedAmount <= softBytes) return;
    this.#blocked = true;
    socket.pause();
    this.#watchDrain();
  }

  readonly #onWritten = (): void => {
    if (!this.#blocked || this.#socket.bufferedAmount > softBytes) return;
    this.#blocked = false;
    this.#cancelDrain?.();
    for (const wake of this.#waiting.splice(0)) wake();
    for (const { data, isBinary } of this.#held.splice(0)) void this.receive(data, isBinary);
    if (!this.#blocked) this.#socket.resume();
  };

  /** Gives up on a client that reads nothing for ten seconds. */
  #watchDrain(): void {
    const before = this.#socket.bufferedAmount;
    this.#cancelDrain = this.#deps.clock.after(drainMs, () => {
      if (this.#socket.bufferedAmount >= before) this.#socket.terminate();
      else this.#watchDrain();
    });
  }

  #close(): void {
    const socket = this.#socket;
    if (this.#closing === undefined || socket.readyState !== socket.OPEN) return;
    socket.close(this.#closing.code, this.#closing.reason);
    // A peer that does not answer the close frame is cut.
    this.#cancelClose?.();
    this.#cancelClose = this.#deps.clock.after(2_000, () => socket.terminate());
  }
}

function textOf(data: RawData): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString('utf8');
  return Buffer.isBuffer(data) ? data.toString('utf8') : Buffer.from(data).toString('utf8');
}
