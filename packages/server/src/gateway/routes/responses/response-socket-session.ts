import { allows, ResponseRequest, type ResponseSocketError } from '@gatehouse/contract';
import * as z from 'zod';
import type { RawData, WebSocket } from 'ws';
import type { ResponseHistory } from '../../../features/conversations/responses/api.ts';
import type { TokensApi } from '../../../features/access/tokens/api.ts';
import { newTraceId } from '../../../kernel/ids.ts';
import { AppError, toAppError } from '../../../kernel/app-error.ts';
import type { CallContext, Identity } from '../../../kernel/call-context.ts';
import { parseJson } from '../../../kernel/json.ts';
import { parseInput } from '../../parse-input.ts';
import { errorOf } from './response-items.ts';
import { type Answering, beginResponse, type ResponseDeps } from './create-response.ts';
import { ResponseEvents } from './response-events.ts';
import { playResponse, type ResponseOutlet } from './play-response.ts';

export interface ResponseSocketDeps extends Pick<ResponseDeps, 'turns' | 'responses' | 'clock' | 'log'> {
  readonly tokens: Pick<TokensApi, 'current'>;
  /** Counts one response against the limits of its token; throws when it may not run now. */
  readonly admit: (identity: Identity) => void;
}

/** Unread bytes above which a client's response is paused, and for how long it may read nothing. */
const softBytes = 256 * 1024;
const stallMs = 30_000;

const Frame = z.looseObject({ type: z.literal('response.create', 'expected "response.create"') });

/** One socket on `/v1/responses`: runs one response at a time, and remembers the last one that is not stored, so that it can be continued. */
export class ResponseSocketSession {
  readonly tokenId: string;
  readonly #remoteAddress: string;
  readonly #socket: WebSocket;
  readonly #deps: ResponseSocketDeps;
  #running: AbortController | undefined;
  #last: { readonly id: string; readonly history: ResponseHistory } | undefined;
  #closing: { readonly code: number; readonly reason: string } | undefined;
  #alive = true;
  #cancelClose: (() => void) | undefined;
  #wake: (() => void) | undefined;

  constructor(socket: WebSocket, deps: ResponseSocketDeps, peer: { readonly tokenId: string; readonly remoteAddress: string }) {
    this.#socket = socket;
    this.#deps = deps;
    this.tokenId = peer.tokenId;
    this.#remoteAddress = peer.remoteAddress;
  }

  /** Handles one frame. Checks the token again: it may have been revoked, or narrowed, since the last one. */
  async receive(data: RawData, isBinary: boolean): Promise<void> {
    const identity = this.#deps.tokens.current(this.tokenId);
    if (identity === undefined) return this.finish(4001, 'Unauthorized', 0);
    if (!allows(identity.scopes, 'v1')) return this.finish(4003, 'Insufficient scope', 0);
    try {
      if (this.#closing !== undefined) throw new AppError('unavailable', 'The connection is being closed');
      if (this.#running !== undefined) throw new AppError('conflict', 'A response is in progress: one connection runs one at a time');
      this.#deps.admit(identity);
      if (isBinary) throw new AppError('parse_error', 'Frames must be text');
      const { type: _, ...body } = parseInput(Frame, parseJson(textOf(data)));
      await this.#respond(body, identity);
    } catch (error) {
      this.#refuse(error);
    }
  }

  /** Lets a running response finish, refuses new ones, then closes; after `withinMs` in any case. */
  finish(code: number, reason: string, withinMs?: number): void {
    this.#closing ??= { code, reason };
    if (this.#running === undefined) this.#close();
    else if (withinMs !== undefined) this.#cancelClose ??= this.#deps.clock.after(withinMs, () => this.#close());
  }

  /** Ends a running response with the reason as its final event, then closes. */
  end(code: number, reason: string, error: AppError): void {
    this.#running?.abort(error);
    this.finish(code, reason, 2_000);
  }

  /** Sends a ping, or cuts a peer that left the last one unanswered. */
  ping(): void {
    if (!this.#alive) return this.#socket.terminate();
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
    this.#cancelClose?.();
    this.#running?.abort();
    this.#last = undefined;
    this.#wake?.();
  }

  async #respond(body: Readonly<Record<string, unknown>>, identity: Identity): Promise<void> {
    const running = new AbortController();
    this.#running = running;
    const last = this.#last;
    // A failed response cannot be continued: the client starts a new chain.
    this.#last = undefined;
    try {
      const { generate, stream: _, ...rest } = body;
      const request = parseInput(ResponseRequest(), rest);
      if (generate !== undefined && generate !== true)
        throw new AppError('invalid_params', 'generate: expected true: there is nothing to warm up', { param: 'generate' });
      const answering = await beginResponse(this.#deps, request, this.#context(identity, running.signal), {
        find: (id) => (last?.id === id ? last.history : undefined),
        keep: (id, history) => (this.#last = { id, history }),
      });
      await this.#play(answering, running.signal);
    } finally {
      this.#running = undefined;
      if (this.#closing !== undefined) this.#close();
    }
  }

  async #play(answering: Answering, signal: AbortSignal): Promise<void> {
    const events = new ResponseEvents(answering.open);
    let pending: string[] = [];
    const flush = (): boolean => {
      for (const frame of pending) this.#send(frame);
      pending = [];
      return this.#socket.bufferedAmount <= softBytes;
    };
    const out: ResponseOutlet = {
      push: (text) => void pending.push(...framesOf(text)),
      flush,
      drained: () => this.#drained(),
      fail: (failure, produced) => {
        this.#last = undefined;
        const error = signal.reason instanceof AppError ? signal.reason : toAppError(failure);
        if (error.code === 'internal') this.#deps.log.error({ err: error }, 'A response over a socket failed');
        if (!produced) return this.#refuse(error);
        out.push(events.end({ ...answering.open, status: 'failed', store: false, error: errorOf(error) }));
        flush();
      },
      end: () => void flush(),
    };
    const run: Answering['run'] = async (sink) => {
      const result = await answering.run(sink);
      // The final event is why it was ended, not that it was.
      if (signal.reason instanceof AppError) throw signal.reason;
      return result;
    };
    await playResponse({ ...answering, run }, events, out);
  }

  #context(identity: Identity, signal: AbortSignal): CallContext {
    const id = newTraceId();
    return { identity, traceId: id, requestId: `req_${id}`, signal, transport: 'websocket', remoteAddress: this.#remoteAddress };
  }

  #refuse(failure: unknown): void {
    const error = toAppError(failure);
    const frame: ResponseSocketError = {
      type: 'error',
      status: error.entry.http,
      error: { type: error.entry.v1, code: codeOf(error), message: error.message, param: error.details.param ?? null },
    };
    this.#send(JSON.stringify(frame));
  }

  #send(frame: string): void {
    const socket = this.#socket;
    if (socket.readyState !== socket.OPEN) return;
    socket.send(frame, () => {
      if (socket.bufferedAmount <= softBytes) this.#wake?.();
    });
  }

  /** Resolves when the client has read what was sent, or is gone; one that reads nothing is cut. */
  #drained(): Promise<void> {
    if (this.#socket.bufferedAmount <= softBytes || this.#socket.readyState !== this.#socket.OPEN) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#deps.clock.after(stallMs, () => this.#socket.terminate());
      this.#wake = () => {
        this.#wake = undefined;
        cancel();
        resolve();
      };
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

/** Returns the data of each event, one frame each, without the end mark of event streams. */
function framesOf(text: string): string[] {
  return text.split('\n\n').flatMap((event) => {
    const at = event.indexOf('data: {');
    return at === -1 ? [] : [event.slice(at + 'data: '.length)];
  });
}

const codes: Partial<Record<AppError['code'], string>> = {
  rate_limited: 'rate_limit_exceeded',
  conflict: 'response_in_progress',
  not_found: 'not_found',
  invalid_params: 'invalid_request',
  parse_error: 'invalid_json',
  unauthenticated: 'invalid_token',
  unavailable: 'unavailable',
};

function codeOf({ code, details: { param, reason } }: AppError): string {
  if (reason !== undefined) return reason;
  if (code === 'not_found' && param === 'previous_response_id') return 'previous_response_not_found';
  if (code === 'not_found' && param === 'model') return 'model_not_found';
  return codes[code] ?? 'server_error';
}

function textOf(data: RawData): string {
  if (Array.isArray(data)) return Buffer.concat(data).toString('utf8');
  return Buffer.isBuffer(data) ? data.toString('utf8') : Buffer.from(data).toString('utf8');
}
