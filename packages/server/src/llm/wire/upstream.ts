import type { Pool } from 'undici';
import type { Clock } from '../../kernel/clock.ts';
import { isMissingPart } from '../../kernel/missing-part.ts';
import { ModelError, type ModelUsage } from '../model.ts';
import { deadlines } from './deadlines.ts';
import { Exchange } from './exchange.ts';
import { cleanMessage } from './wire-error.ts';

export interface UpstreamOptions {
  readonly provider: string;
  /** Up to and including /v1 where the vendor has it. */
  readonly baseUrl: string;
  /** Headers of every request, one record for each key; `post` names which. */
  readonly headers: readonly Readonly<Record<string, string>>[];
  /** Must never appear in an error text. */
  readonly secrets: readonly string[];
  readonly maxConnections: number;
  readonly clock: Clock;
}

/** Parses the body of an answer. */
export interface AnswerReader<T> {
  /** Limit of the body of an unstreamed answer; 32 MiB at most. */
  readonly maxBodyBytes?: number;
  /** Set when a stream is expected; a provider that nevertheless answers without streaming is read by `whole`. */
  readonly stream: StreamReader<T> | undefined;
  whole(body: Buffer): T;
  /** Returns the estimated usage of a call that the provider accepted, and that ended without an answer to count. */
  unanswered(): ModelUsage;
}

export interface StreamReader<T> {
  /** Takes one chunk in; nothing is passed on yet. */
  push(chunk: Buffer): void;
  /** Passes on what arrived; false asks for a pause until `drained`. */
  advance(): boolean;
  drained(): Promise<void>;
  /** True when nothing relevant can follow. */
  readonly finished: boolean;
  /** Returns the result after the last byte; fails when the stream was cut. */
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

/** Loads the HTTP client. It costs startup time, so this waits until the first call, or until the listener is up and idle. */
export function loadTransport(): Promise<{ readonly Pool: typeof Pool }> {
  // A failure, such as for lack of descriptors, is not cached; but a missing file is, because a second import would fail without naming it.
  undici ??= import('../../kernel/undici.ts').catch((error: unknown) => {
    if (!isMissingPart(error)) undici = undefined;
    throw error;
  });
  return undici;
}

/** The sockets to one provider. */
export class Upstream implements AsyncDisposable {
  readonly options: UpstreamOptions;
  readonly #basePath: string;
  readonly #headers: readonly string[][];
  #pool: Pool | undefined;
  #disposed = false;

  constructor(options: UpstreamOptions) {
    this.options = options;
    this.#basePath = new URL(options.baseUrl).pathname.replace(/\/+$/, '');
    this.#headers = options.headers.map((headers) =>
      Object.entries({ 'content-type': 'application/json', 'user-agent': 'gatehouse', ...headers }).flat(),
    );
  }

  /** Posts JSON with a key and reads the answer. Fails with ModelError only. */
  async post<T>(call: Call, reader: AnswerReader<T>, key = 0): Promise<T> {
    const pool = this.#pool ?? (await this.#open());
    if (call.signal.aborted) throw new ModelError('aborted', 'The call was aborted');
    return new Promise((resolve, reject) => {
      const exchange = new Exchange(this, call, reader, { resolve, reject });
      exchange.begin();
      try {
        // The exchange keeps the deadlines, on the injected clock.
        pool.dispatch(
          { path: this.#basePath + call.path, method: 'POST', headers: this.#headers[key] ?? [], body: call.body, headersTimeout: 0, bodyTimeout: 0 },
          exchange,
        );
      } catch (error) {
        exchange.fail('bad_request', error instanceof Error ? error.message : String(error));
      }
    });
  }

  /** Returns a text that may be shown: with the provider's name, without secrets and control characters. */
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
