import type { Pool } from 'undici';
import type { Clock } from '../../kernel/clock.ts';
import { ModelError, type ModelUsage } from '../model.ts';
import { deadlines } from './deadlines.ts';
import { Exchange } from './exchange.ts';
import { cleanMessage } from './wire-error.ts';

export interface UpstreamOptions {
  readonly provider: string;
  /** Up to and with /v1 where the vendor has it. */
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Never to appear in an error text. */
  readonly secrets: readonly string[];
  readonly maxConnections: number;
  readonly clock: Clock;
}

/** Takes the body of an answer apart. */
export interface AnswerReader<T> {
  /** A longer body of an answer in one piece is not read; 32 MiB at most. */
  readonly maxBodyBytes?: number;
  /** Set when a stream is expected; a provider that answers in one piece all the same is read by `whole`. */
  readonly stream: StreamReader<T> | undefined;
  whole(body: Buffer): T;
  /** What the call is estimated to have used that the provider has taken, and that ended without an answer to count by. */
  unanswered(): ModelUsage;
}

export interface StreamReader<T> {
  /** Takes one chunk in; nothing is handed out yet. */
  push(chunk: Buffer): void;
  /** Hands out what arrived; false asks for a pause until `drained`. */
  advance(): boolean;
  drained(): Promise<void>;
  /** True when nothing that matters can follow. */
  readonly finished: boolean;
  /** The result after the last byte; fails when the stream was cut. */
  end(): T;
  /** Adds to an error what was received before it. */
  failed(error: ModelError): ModelError;
}

export interface Call {
  readonly path: string;
  readonly body: string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

let undici: Promise<{ readonly Pool: typeof Pool }> | undefined;

/** Loads the HTTP client. It costs start time, so it is left until the first call, or until the listener is up and has time. */
export function loadTransport(): Promise<{ readonly Pool: typeof Pool }> {
  // A failure, as for want of descriptors, is not kept.
  undici ??= import('../../kernel/undici.ts').catch((error: unknown) => {
    undici = undefined;
    throw error;
  });
  return undici;
}

/** The sockets to one provider. */
export class Upstream implements AsyncDisposable {
  readonly options: UpstreamOptions;
  readonly #basePath: string;
  readonly #headers: string[];
  #pool: Pool | undefined;
  #disposed = false;

  constructor(options: UpstreamOptions) {
    this.options = options;
    this.#basePath = new URL(options.baseUrl).pathname.replace(/\/+$/, '');
    this.#headers = Object.entries({ 'content-type': 'application/json', 'user-agent': 'gatehouse', ...options.headers }).flat();
  }

  /** Posts JSON and reads the answer. Fails with ModelError only. */
  async post<T>(call: Call, reader: AnswerReader<T>): Promise<T> {
    const pool = this.#pool ?? (await this.#open());
    if (call.signal.aborted) throw new ModelError('aborted', 'The call was aborted');
    return new Promise((resolve, reject) => {
      const exchange = new Exchange(this, call, reader, { resolve, reject });
      exchange.begin();
      try {
        // Deadlines are kept by the exchange, on the injected clock.
        pool.dispatch(
          { path: this.#basePath + call.path, method: 'POST', headers: this.#headers, body: call.body, headersTimeout: 0, bodyTimeout: 0 },
          exchange,
        );
      } catch (error) {
        exchange.fail('bad_request', error instanceof Error ? error.message : String(error));
      }
    });
  }

  /** A text that may leave: the provider named, secrets and control characters gone. */
  clean(text: string): string {
    return cleanMessage(text, this.options.secrets);
  }

  async #open(): Promise<Pool> {
    const transport = await loadTransport();
    if (this.#disposed) throw new ModelError('network', `Provider "${this.options.provider}" is closed`);
    // HTTP/2 would share one socket between calls: aborting one could then not close it.
    this.#pool ??= new transport.Pool(new URL(this.options.baseUrl).origin, {
      connections: this.options.maxConnections,
      allowH2: false,
      connect: { timeout: deadlines.connectMs },
    });
    return this.#pool;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    const pool = this.#pool;
    this.#pool = undefined;
    await pool?.destroy();
  }
}
