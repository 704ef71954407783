import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { ModelError, type ModelErrorKind } from '../model.ts';
import { deadlines } from './deadlines.ts';
import { withUsage } from './partial.ts';
import type { AnswerReader, Call, StreamReader, Upstream } from './upstream.ts';
import { readComplaint, readRefusal, retryAfterOf } from './wire-error.ts';

const mostBodyBytes = 33_554_432;
const maxErrorBytes = 65_536;
/** How long a connection may stay open after the last relevant frame, in case it can be reused. */
const lingerMs = 1000;

/** Reactions to it run when the present read is processed, as with `queueMicrotask`, which allocates an object for async hooks each time. */
const readThrough = Promise.resolve();

/** One request to a provider and its answer, as the callbacks of undici's dispatcher. Settles once; closes its socket when it fails. */
export class Exchange<T> implements Dispatcher.DispatchHandler {
  readonly #upstream: Upstream;
  readonly #call: Call;
  readonly #reader: AnswerReader<T>;
  readonly #promise: { readonly resolve: (value: T) => void; readonly reject: (error: ModelError) => void };
  readonly #abort = () => this.fail('aborted', 'The call was aborted');
  #controller: Dispatcher.DispatchController | undefined;
  #stream: StreamReader<T> | undefined;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #chunks: Buffer[] = [];
  #bytes = 0;
  #settled = false;
  #ended = false;
  #paused = false;
  #scheduled = false;
  #totalAt = 0;
  /** Deadline of the present wait; none while the request is queued, while an unstreamed answer is generated, or while the sink is full. */
  #waitAt = Number.POSITIVE_INFINITY;
  #cancelTimer: (() => void) | undefined;
  /** A timer that is no longer needed would keep the whole answer in memory. */
  #cancelLinger: (() => void) | undefined;

  constructor(
    upstream: Upstream,
    call: Call,
    reader: AnswerReader<T>,
    promise: { resolve: (value: T) => void; reject: (error: ModelError) => void },
  ) {
    this.#upstream = upstream;
    this.#call = call;
    this.#reader = reader;
    this.#promise = promise;
  }

  begin(): void {
    const { clock } = this.#upstream.options;
    this.#totalAt = clock.monotonic() + this.#call.timeoutMs;
    this.#arm(Math.min(this.#call.timeoutMs, deadlines.firstByteMs));
    this.#call.signal.addEventListener('abort', this.#abort, { once: true });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#settled) controller.abort(new Error('aborted'));
    else if (this.#reader.stream !== undefined) this.#waitAt = this.#upstream.options.clock.monotonic() + deadlines.firstByteMs;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200 || this.#settled) return;
    this.#status = status;
    this.#headers = headers;
    if (status !== 200) return;
    if (headers['content-encoding'] !== undefined && headers['content-encoding'] !== 'identity')
      return this.fail('bad_response', `content-encoding ${String(headers['content-encoding'])} was not asked for`);
    if (!String(headers['content-type']).startsWith('application/json')) this.#stream = this.#reader.stream;
    if (this.#stream === undefined && Number(headers['content-length']) > this.#maxBodyBytes) this.#tooLarge();
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#settled) return;
    if (this.#stream !== undefined) {
      this.#guarded(() => this.#stream?.push(chunk));
      // One socket read contains many HTTP chunks; they are passed on together once the read is processed.
      if (!this.#scheduled) {
        this.#scheduled = true;
        void readThrough.then(this.#advance);
      }
      return;
    }
    this.#progress();
    this.#bytes += chunk.length;
    this.#chunks.push(chunk);
    if (this.#status === 200 ? this.#bytes > this.#maxBodyBytes : this.#bytes > maxErrorBytes) {
      if (this.#status === 200) this.#tooLarge();
      else this.#refused();
    }
  }

  onResponseEnd(): void {
    this.#ended = true;
    this.#cancelLinger?.();
    if (this.#settled) return;
    if (this.#status !== 200) return this.#refused();
    const stream = this.#stream;
    if (stream === undefined) {
      this.#guarded(() =>
        this.#settle(this.#reader.whole(this.#chunks.length === 1 && this.#chunks[0] !== undefined ? this.#chunks[0] : Buffer.concat(this.#chunks))),
      );
    } else if (!this.#paused) {
      this.#guarded(() => {
        stream.advance();
        this.#settle(stream.end());
      });
    }
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#ended = true;
    this.#cancelLinger?.();
    if (this.#settled) return;
    if (this.#stream !== undefined && !this.#paused) {
      this.#guarded(() => {
        // Data in the same read as the cut was received nevertheless.
        this.#stream?.advance();
        if (this.#stream?.finished === true) this.#settle(this.#stream.end());
      });
      if (this.#settled) return;
    }
    const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
    if (code.startsWith('HPE_') || code === 'UND_ERR_HEADERS_OVERFLOW') this.fail('bad_response', `${code}: ${error.message}`);
    else if (code === 'UND_ERR_CONNECT_TIMEOUT') this.fail('network', `no connection within ${deadlines.connectMs} ms`);
    else this.fail('network', error.message.includes(code) ? error.message : `${code}: ${error.message}`, error);
  }

  /** Ends the exchange with an error; does nothing when it has settled. */
  fail(kind: ModelErrorKind, reason: string, cause?: unknown): void {
    if (this.#settled) return;
    const status = this.#status > 0 && this.#status !== 200 ? { status: this.#status } : {};
    this.#reject(new ModelError(kind, `${this.#name}: ${this.#upstream.clean(reason)}`, { ...status, ...(cause === undefined ? {} : { cause }) }));
  }

  get #maxBodyBytes() {
    return Math.min(this.#reader.maxBodyBytes ?? mostBodyBytes, mostBodyBytes);
  }

  #tooLarge() {
    this.fail('oversized', `the body of the answer is larger than ${this.#maxBodyBytes} bytes`);
  }

  get #name() {
    return `Provider "${this.#upstream.options.provider}"`;
  }

  #refused() {
    const complaint = readComplaint(Buffer.concat(this.#chunks).toString());
    const status = this.#status;
    const retryAfterMs = retryAfterOf(this.#headers, this.#upstream.options.clock.now());
    const said = this.#upstream.clean(complaint.message);
    const redirect = status >= 300 && status < 400 ? ' (redirects are not followed; correct the base URL)' : '';
    const message = `${this.#name} answered ${status}${redirect}${said === '' ? '' : `: ${said}`}`;
    const { kind, ...meaning } = readRefusal(status, complaint);
    this.#reject(new ModelError(kind, message, { ...meaning, status, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }));
  }

  readonly #advance = () => {
    this.#scheduled = false;
    const stream = this.#stream;
    if (this.#settled || this.#paused || stream === undefined) return;
    this.#progress();
    this.#guarded(() => {
      const wantsMore = stream.advance();
      if (stream.finished) this.#settle(stream.end());
      else if (!wantsMore) this.#pause(stream);
    });
  };

  #pause(stream: StreamReader<T>) {
    this.#paused = true;
    this.#waitAt = Number.POSITIVE_INFINITY;
    this.#controller?.pause();
    const resume = () => {
      if (this.#settled) return;
      this.#paused = false;
      if (this.#ended) {
        this.#guarded(() => {
          stream.advance();
          this.#settle(stream.end());
        });
        return;
      }
      this.#advance();
      if (!this.#paused) this.#controller?.resume();
    };
    stream.drained().then(resume, (error: unknown) => this.fail('aborted', 'The reader of the stream is gone', error));
  }

  /** Errors of the readers and of the sink end the exchange: thrown into undici or a microtask they would break more. */
  #guarded(run: () => void) {
    try {
      run();
    } catch (error) {
      if (this.#settled) return;
      if (error instanceof ModelError)
        this.#reject(
          new ModelError(error.kind, `${this.#name}: ${this.#upstream.clean(error.message)}`, {
            cause: error.cause,
            ...(error.possibly !== undefined && { possibly: error.possibly }),
          }),
        );
      else this.#reject(new ModelError('bad_response', `${this.#name}: ${this.#upstream.clean(String(error))}`, { cause: error }));
    }
  }

  #progress() {
    this.#waitAt = this.#upstream.options.clock.monotonic() + deadlines.idleMs;
  }

  #arm(ms: number) {
    this.#cancelTimer = this.#upstream.options.clock.after(ms, () => {
      const now = this.#upstream.options.clock.monotonic();
      if (now >= this.#totalAt) this.fail('timeout', `no complete answer within ${this.#call.timeoutMs} ms`);
      else if (now >= this.#waitAt)
        this.fail('timeout', this.#status === 0 ? `no answer within ${deadlines.firstByteMs} ms` : `silent for ${deadlines.idleMs} ms`);
      else this.#arm(Math.max(1, Math.min(this.#totalAt, this.#waitAt, now + deadlines.idleMs, now + deadlines.firstByteMs) - now));
    });
  }

  #release() {
    this.#settled = true;
    this.#cancelTimer?.();
    this.#call.signal.removeEventListener('abort', this.#abort);
    this.#chunks = [];
  }

  #settle(value: T) {
    this.#release();
    if (!this.#ended && this.#controller !== undefined) {
      const controller = this.#controller;
      this.#cancelLinger = this.#upstream.options.clock.after(lingerMs, () => {
        if (!this.#ended) controller.abort(new Error('the stream continued after its end'));
      });
    }
    this.#promise.resolve(value);
  }

  #reject(error: ModelError) {
    this.#release();
    if (!this.#ended) this.#controller?.abort(error);
    const failure = this.#stream === undefined ? error : this.#stream.failed(error);
    this.#promise.reject(failure.usage === undefined && this.#hasCost(error.kind) ? withUsage(failure, this.#reader.unanswered()) : failure);
  }

  /** Whether the provider worked in vain: a caller that keeps aborting before the answer would otherwise spend without being counted. */
  #hasCost(kind: ModelErrorKind): boolean {
    if (this.#controller === undefined) return false;
    if (kind === 'aborted' || kind === 'timeout') return this.#status === 0 || this.#status === 200;
    return this.#status === 200 && this.#bytes > 0 && (kind === 'network' || kind === 'bad_response');
  }
}
