import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { AppError } from '../kernel/app-error.ts';
import type { Identity } from '../kernel/call-context.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Log } from '../kernel/log.ts';
import { Roster } from '../kernel/roster.ts';
import { repeat } from '../kernel/timers.ts';
import type { HttpCall } from './http-call.ts';

/** How long a client may leave a complete response unread before its socket is cut. */
const untakenMs = 30_000;
const sweepMs = 5_000;

/** The HTTP calls whose responses are not yet taken by their clients. */
export class OpenCalls implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #calls = new Roster<HttpCall>();
  readonly #sweeping: AsyncDisposable;

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    const onError = (error: unknown) => log.error({ err: error }, 'Failed to check for unread responses');
    this.#sweeping = repeat({ clock, everyMs: sweepMs, run: () => this.#sweep(), onError });
  }

  get size(): number {
    return this.#calls.size;
  }

  /** Number of open responses that are event streams. */
  get streams(): number {
    return this.#calls.members().filter((call) => call.streams).length;
  }

  /** Adds a call. The returned function removes it. */
  join(call: HttpCall): () => void {
    return this.#calls.join(call);
  }

  /** Returns the calls of a connection, several when its client sent further requests before the answer. */
  on(socket: Socket | Duplex): HttpCall[] {
    return this.#calls.members().filter(({ incoming }) => incoming.socket === socket);
  }

  /**
   * Ends the calls of a token that was revoked. One that is still valid, `current`, was rotated or grants something else: the work that it
   * started continues, and a call whose body still arrives has what the token grants now.
   */
  endToken(tokenId: string, current: Identity | undefined): void {
    const isGone = current === undefined;
    const ended = new AppError('unauthenticated', 'The token was revoked or has expired');
    for (const call of this.#calls.members()) {
      if (call.identity?.tokenId !== tokenId) continue;
      if (!isGone && !call.outgoing.headersSent) call.identity = current;
      // Before the first byte a failure can still be a status.
      if (isGone && !call.outgoing.headersSent) call.abort(ended);
      else if (call.streams && (isGone || !call.endsItself)) call.cutStream(ended);
    }
  }

  /** Has the connections of calls that were not answered yet closed after the answer. */
  closeAfterAnswers(): void {
    for (const call of this.#calls.members()) if (!call.outgoing.headersSent) call.setHeader('connection', 'close');
  }

  cut(): void {
    for (const call of this.#calls.members()) call.cut();
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#sweeping[Symbol.asyncDispose]();
  }

  /** Cuts idle connections: nothing in node closes one whose client does not read a complete response. */
  #sweep(): void {
    const now = this.#clock.monotonic();
    for (const call of this.#calls.members()) {
      if (!call.outgoing.writableEnded) continue;
      call.endedAtMs ??= now;
      if (now - call.endedAtMs >= untakenMs) call.cut();
    }
  }
}
