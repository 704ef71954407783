import type { ApiChatRequest, ApiChatResult } from '@gatehouse/contract';
import type { CallOptions } from './calls.ts';
import { createError, GatehouseError } from './errors.ts';
import type { Http } from './http.ts';
import { delayBeforeRetry, type RetryOptions, sleep } from './retry.ts';
import type { StreamEvent, StreamPosition } from './sse.ts';
import { defaultIdleTimeoutMs, openStream, parseData } from './stream.ts';
import { errorFromApi, isRecord, type ReplyContext } from './wire.ts';

export type TurnRequest = ApiChatRequest;
export type TurnResult = ApiChatResult;

/** `gap` reports deltas that the server no longer has; `done` still has the whole answer. */
export type TurnEvent =
  | { readonly type: 'token'; readonly delta: string }
  | { readonly type: 'gap' }
  | { readonly type: 'done'; readonly result: TurnResult };

export interface TurnOptions extends CallOptions {
  /**
   * Identifies the turn for 24 h: the same request with the same key is the same turn, never a second one. Generated when
   * absent. `false` sends none: then a lost connection or leaving the loop ends the turn at once instead of after 30 s.
   */
  readonly idempotencyKey?: string | false | undefined;
  /** How often a broken connection is resumed. */
  readonly retry?: Partial<RetryOptions>;
}

export interface StreamTurnOptions extends TurnOptions {
  /** Idle timeout of the connection in milliseconds (45 s). */
  readonly idleTimeoutMs?: number;
}

export type TakeTurn = (request: TurnRequest, options?: TurnOptions) => Promise<TurnResult>;
export type StreamTurn = (request: TurnRequest, options?: StreamTurnOptions) => AsyncGenerator<TurnEvent, void, undefined>;

/** About ten seconds in total: the server keeps a turn for 30 s after its client disconnects. */
const defaultTurnRetry: RetryOptions = { retries: 5, initialDelayMs: 250, maxDelayMs: 5_000 };

/** Creates the turn calls: whole answers by `POST /api/chat`, streams by `POST /api/chat/stream`. */
export function createTurns(http: Http, defaultTimeoutMs: number): { turn: TakeTurn; streamTurn: StreamTurn } {
  return {
    async turn(request, options = {}) {
      const { idempotencyKey = makeKey(), signal, timeoutMs = defaultTimeoutMs } = options;
      for (let tried = 0; ; tried += 1) {
        try {
          const headers = keyHeader(idempotencyKey);
          return (await http.json({ method: 'POST', path: '/api/chat', body: request, headers, signal, timeoutMs })).body as TurnResult;
        } catch (error) {
          await pauseOrThrow(error, tried, options);
        }
      }
    },
    async *streamTurn(request, options = {}) {
      const { idempotencyKey = makeKey(), signal, timeoutMs = defaultTimeoutMs, idleTimeoutMs = defaultIdleTimeoutMs } = options;
      const position: StreamPosition = { lastEventId: '', retryMs: undefined };
      for (let tried = 0; ; tried += 1) {
        let isOver = false;
        try {
          const { context, events } = await openStream(http, {
            method: 'POST',
            path: '/api/chat/stream',
            body: request,
            headers: keyHeader(idempotencyKey),
            signal,
            timeoutMs,
            idleTimeoutMs,
            position,
          });
          for await (const event of events) {
            isOver = event.type === 'error' || event.type === 'done';
            const read = readEvent(event, context);
            if (read !== undefined) yield read;
            if (isOver) return;
          }
          throw createError({
            ...context,
            code: 'connection_failed',
            message: 'The stream ended before the turn did; the text so far is not the whole answer.',
          });
        } catch (error) {
          // A failure of the turn itself is final, so retrying would return it again.
          if (isOver) throw error;
          await pauseOrThrow(error, tried, options);
        }
      }
    },
  };
}

/**
 * Waits until the turn may be retried, or throws the failure. An error response to the first attempt is final
 * unless it says when to retry; a later one may come from a restarting server.
 */
async function pauseOrThrow(error: unknown, tried: number, { idempotencyKey, signal, retry }: TurnOptions): Promise<void> {
  const isAnswer = !(error instanceof GatehouseError) || (error.code !== 'connection_failed' && error.retryAfterMs === undefined);
  const delayMs =
    idempotencyKey === false || (isAnswer && tried === 0) ? undefined : delayBeforeRetry(error, tried, { ...defaultTurnRetry, ...retry });
  if (delayMs === undefined) throw error;
  await sleep(delayMs, signal);
}

function readEvent({ type, data }: StreamEvent, context: ReplyContext): TurnEvent | undefined {
  if (type === 'gap') return { type };
  if (type !== 'token' && type !== 'done' && type !== 'error') return undefined;
  const value = parseData(data, context);
  if (type === 'error') throw errorFromApi(value, context, { code: 'internal', message: 'The turn failed.' });
  if (type === 'token' && isRecord(value) && typeof value['delta'] === 'string') return { type, delta: value['delta'] };
  if (type === 'done' && isRecord(value) && typeof value['response'] === 'string') return { type, result: value as TurnResult };
  throw createError({ ...context, code: 'bad_reply', message: `The stream contains a ${type} event that is not valid.` });
}

function keyHeader(key: string | false): Record<string, string> {
  return key === false ? {} : { 'idempotency-key': key };
}

/** Returns 128 random bits. Not `randomUUID`, which browsers block on pages loaded over plain HTTP. */
function makeKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
