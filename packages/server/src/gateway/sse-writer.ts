import type { AppError } from '../kernel/app-error.ts';
import type { Clock } from '../kernel/clock.ts';
import { drained } from './drained.ts';
import { errorBody } from './error-body.ts';
import type { HttpCall } from './http-call.ts';

export interface SseOptions {
  readonly clock: Clock;
  /** Silence after which a comment is sent, so that proxies do not cut the stream. */
  readonly keepAliveMs?: number;
  /** How long a reader may read nothing at all before it counts as gone. */
  readonly stallMs?: number;
  /** Text of a keep-alive; a comment by default. */
  readonly keepAliveText?: () => string;
  /** The last text of a failed stream; the family's own format by default. */
  readonly errorText?: (error: AppError) => string;
}

/** Returns the end of a failed stream by family: `/v1` has one data line and `[DONE]`, all others an event `error`. */
export function streamError(call: HttpCall, error: AppError): string {
  const data = `data: ${JSON.stringify(errorBody(call.family, error, call.requestId))}\n\n`;
  return call.family === 'v1' ? `${data}data: [DONE]\n\n` : `event: error\n${data}`;
}

/** Writes the status and headers of an event stream, which no cache or proxy may buffer. */
export function beginEventStream(call: HttpCall): void {
  call.setHeader('content-type', 'text/event-stream; charset=utf-8');
  call.setHeader('cache-control', 'no-cache, no-transform');
  call.setHeader('x-accel-buffering', 'no');
  call.writeHead(200);
}

/**
 * Writes one event stream onto the node response. Text is collected by `push` and sent in one write at `flush`; the
 * status is sent with the first of these or the first keep-alive, so that a failure before it can still be a status.
 */
export class SseWriter {
  readonly #call: HttpCall;
  readonly #clock: Clock;
  readonly #keepAliveMs: number;
  readonly #stallMs: number;
  readonly #keepAliveText: () => string;
  readonly #errorText: (error: AppError) => string;
  #pending = '';
  #lastWriteMs: number;
  #cancelTimer: () => void;

  constructor(
    call: HttpCall,
    {
      clock,
      keepAliveMs = 15_000,
      stallMs = 30_000,
      keepAliveText = () => ': keep-alive\n\n',
      errorText = (error) => streamError(call, error),
    }: SseOptions,
  ) {
    this.#call = call;
    call.streams = true;
    call.endsItself = true;
    call.endStream = (error) => this.fail(error);
    this.#keepAliveText = keepAliveText;
    this.#errorText = errorText;
    this.#clock = clock;
    this.#keepAliveMs = keepAliveMs;
    this.#stallMs = stallMs;
    this.#lastWriteMs = clock.monotonic();
    this.#cancelTimer = clock.after(keepAliveMs, () => this.#onTimer());
    call.outgoing.once('close', () => this.#cancelTimer());
  }

  /** True once the status line has been sent: from here on a failure can only be an event. */
  get started(): boolean {
    return this.#call.outgoing.headersSent;
  }

  /** Adds the text of whole events to the next write. */
  push(text: string): void {
    this.#pending += text;
  }

  /** Sends the pushed text. Returns false when the reader is slow: wait for `drained` before producing more. */
  flush(): boolean {
    const { outgoing } = this.#call;
    if (this.#pending !== '' && !outgoing.destroyed && !outgoing.writableEnded) {
      this.#start();
      outgoing.write(this.#pending);
      this.#lastWriteMs = this.#clock.monotonic();
    }
    this.#pending = '';
    return !outgoing.writableNeedDrain || outgoing.destroyed;
  }

  /** Resolves when the reader has read what was sent, or is gone; one that reads nothing for `stallMs` is cut. */
  drained(): Promise<void> {
    const { outgoing } = this.#call;
    if (!outgoing.writableNeedDrain || outgoing.destroyed) return Promise.resolve();
    return drained(this.#call, this.#clock, this.#stallMs);
  }

  /** Sends the rest and completes the response. */
  end(): void {
    this.#cancelTimer();
    const { outgoing } = this.#call;
    if (outgoing.destroyed || outgoing.writableEnded) return;
    this.#start();
    outgoing.end(this.#pending);
    this.#pending = '';
  }

  /** Ends the stream with the failure as its final event. */
  fail(error: AppError): void {
    this.push(this.#errorText(error));
    this.end();
  }

  /** Releases the unused response, so that it can be answered differently; only before `started`. */
  cancel(): void {
    this.#cancelTimer();
    this.#pending = '';
  }

  #start(): void {
    if (!this.#call.outgoing.headersSent) beginEventStream(this.#call);
  }

  /** One timer per interval, not one per write: it checks when the last write was and sleeps for the rest. */
  #onTimer(): void {
    const { outgoing } = this.#call;
    if (outgoing.destroyed || outgoing.writableEnded) return;
    let silentMs = this.#clock.monotonic() - this.#lastWriteMs;
    if (silentMs >= this.#keepAliveMs) {
      // A reader that is behind gets no keep-alive: unread data serves as one.
      if (!outgoing.writableNeedDrain) {
        this.push(this.#keepAliveText());
        this.flush();
      }
      silentMs = 0;
    }
    this.#cancelTimer = this.#clock.after(this.#keepAliveMs - silentMs, () => this.#onTimer());
  }
}
