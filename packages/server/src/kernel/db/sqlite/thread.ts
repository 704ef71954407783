import { Worker } from 'node:worker_threads';
import { AppError } from '../../app-error.ts';
import type { DbStatus } from '../db.ts';
import { fromWireError } from '../wire-error.ts';
import type { Answers, CallKind, FromThread, ThreadData, ToThread } from './wire.ts';

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** A storage thread as the thread that starts it sees it. */
export interface StorageWorker {
  on(event: 'message', listener: (message: FromThread) => void): unknown;
  on(event: 'error' | 'messageerror', listener: (error: Error) => void): unknown;
  once(event: 'exit', listener: (code: number) => void): unknown;
  postMessage(message: unknown): void;
  terminate(): Promise<number>;
}
export type StartStorageThread = (data: ThreadData) => StorageWorker;

export interface ThreadOptions {
  readonly start: StartStorageThread;
  readonly data: ThreadData;
  /** Calls that may wait for an answer before more are refused. */
  readonly maxPending: number;
  readonly onState?: (state: DbStatus['state']) => void;
  readonly onTelemetryState?: (state: DbStatus['state']) => void;
  /** The files of the database are no longer in place. */
  readonly onMoved?: () => void;
  /** The thread exited although nobody closed it; its calls were rejected. */
  readonly onCrash: (error: Error) => void;
}

/** Heaps are small: rows pass through, nothing stays. */
const resourceLimits = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 512 };

/**
 * A commit costs about as much as a whole turn, so the thread collects calls for a moment while fewer have arrived than shared
 * the last commit, unless there are many already. Calls that arrive one at a time do not wait.
 */
const gather = { ms: 1, calls: 32 } as const;

/**
 * The main thread's side of one storage thread. One message is in flight at a time: calls that arrive while the thread
 * commits are sent together when it has answered, and share the next commit.
 */
export class StorageThread {
  readonly ready: Promise<{ readonly schemaVersion: number; readonly applied: readonly string[] }>;
  readonly #worker: StorageWorker;
  readonly #options: ThreadOptions;
  readonly #exited: Promise<void>;
  #pending: Pending[] = [];
  #outbox: unknown[] = [];
  #awaited = 0;
  #scheduled: 'now' | 'soon' | undefined;
  /** Number of calls that the last answer covered. */
  #lastShared = 1;
  #ended: Error | undefined;
  #closing = false;
  #isReady = false;

  constructor(options: ThreadOptions) {
    this.#options = options;
    this.#worker = options.start(options.data);
    const ready = Promise.withResolvers<{ schemaVersion: number; applied: readonly string[] }>();
    this.ready = ready.promise;
    this.ready.catch(() => {});
    this.#exited = new Promise((resolve) => {
      this.#worker.once('exit', (code) => {
        this.#end(new Error(`The storage thread ended with code ${code}`));
        ready.reject(this.#ended);
        resolve();
      });
    });
    this.#worker.on('error', (error) => this.#end(toError(error)));
    this.#worker.on('messageerror', (error) => this.#end(error));
    this.#worker.on('message', (message: FromThread) => {
      switch (message.type) {
        case 'answers':
          this.#settle(message);
          break;
        case 'ready':
          this.#isReady = true;
          ready.resolve(message);
          break;
        case 'refused':
          this.#end(fromWireError(message.error));
          ready.reject(this.#ended);
          break;
        case 'progress':
        case 'done':
          // Sent by tasks only; see runTask.
          break;
      }
    });
  }

  get pending(): number {
    return this.#pending.length;
  }

  /** True from its first message until it exits. */
  get isReady(): boolean {
    return this.#isReady && this.#ended === undefined;
  }

  get ended(): boolean {
    return this.#ended !== undefined;
  }

  call(kind: CallKind, operation: string, input: unknown): Promise<unknown> {
    if (this.#ended !== undefined || this.#closing) return Promise.reject(new AppError('unavailable', 'The storage is closed'));
    if (this.pending >= this.#options.maxPending)
      return Promise.reject(new AppError('unavailable', 'The storage cannot keep up: too many operations wait'));
    this.#outbox.push(kind, operation, input);
    this.#schedule();
    return new Promise((resolve, reject) => {
      this.#pending.push({ resolve, reject });
    });
  }

  /** Waits until every call has been answered and the files are closed. */
  async close(): Promise<void> {
    if (!this.#closing && this.#ended === undefined) {
      this.#send();
      this.#closing = true;
      this.#worker.postMessage('close' satisfies ToThread);
    }
    await this.#exited;
  }

  #schedule(): void {
    if (this.#awaited > 0 || this.#scheduled === 'now') return;
    if (this.#scheduled === 'soon' && this.#outbox.length < 3 * gather.calls) return;
    // All sockets that were readable in this turn of the loop have been served when the message leaves.
    setImmediate(this.#scheduled === 'soon' ? this.#flush : this.#flushOrGather);
    this.#scheduled = 'now';
  }

  readonly #flushOrGather = (): void => {
    // Queries share nothing: only the writer gains by waiting.
    if (this.#options.data.role !== 'writer' || this.#outbox.length >= 3 * Math.min(this.#lastShared, gather.calls)) return this.#flush();
    this.#scheduled = 'soon';
    setTimeout(this.#flush, gather.ms);
  };

  readonly #flush = (): void => {
    this.#scheduled = undefined;
    if (this.#awaited === 0) this.#send();
  };

  #send(): void {
    const calls = this.#outbox;
    if (calls.length === 0 || this.#ended !== undefined) return;
    this.#outbox = [];
    this.#awaited += calls.length / 3;
    try {
      this.#worker.postMessage(calls satisfies ToThread);
    } catch {
      this.#flushOneByOne(calls);
    }
  }

  /** An input that is not plain data must not fail the other calls of its message. */
  #flushOneByOne(calls: readonly unknown[]): void {
    let index = this.#pending.length - calls.length / 3;
    for (let at = 0; at < calls.length; at += 3) {
      try {
        this.#worker.postMessage(calls.slice(at, at + 3));
        index += 1;
      } catch (error) {
        this.#awaited -= 1;
        this.#pending.splice(index, 1)[0]?.reject(error);
      }
    }
  }

  #settle({ results, errors, state, telemetryState, moved }: Answers): void {
    if (state !== undefined) this.#options.onState?.(state);
    if (telemetryState !== undefined) this.#options.onTelemetryState?.(telemetryState);
    if (moved === true) this.#options.onMoved?.();
    const answered = this.#pending.splice(0, results.length);
    this.#awaited -= results.length;
    this.#lastShared = results.length;
    if (this.#outbox.length > 0) this.#schedule();
    for (const [index, error] of errors ?? []) answered[index]?.reject(fromWireError(error));
    // A promise that was rejected above ignores this.
    for (let index = 0; index < results.length; index++) answered[index]?.resolve(results[index]);
  }

  #end(error: Error): void {
    if (this.#ended !== undefined) return;
    this.#ended = error;
    const waiting = this.#pending;
    this.#pending = [];
    for (const { reject } of waiting)
      reject(new AppError('unavailable', 'The storage thread ended before it answered; whether the change was kept is not known', { cause: error }));
    if (!this.#closing) this.#options.onCrash(error);
  }
}

/** Runs one long task in a separate thread, which exits with the task or with the signal. */
export async function runTask(
  start: StartStorageThread,
  data: ThreadData,
  signal: AbortSignal,
  onProgress?: (done: number, total: number) => void,
): Promise<unknown> {
  signal.throwIfAborted();
  const worker = start(data);
  const outcome = Promise.withResolvers<unknown>();
  const abort = () => {
    outcome.reject(signal.reason);
    void worker.terminate();
  };
  signal.addEventListener('abort', abort);
  worker.on('message', (message: FromThread) => {
    if (message.type === 'progress') onProgress?.(message.done, message.total);
    else if (message.type === 'done') outcome.resolve(message.result);
    else if (message.type === 'refused') outcome.reject(fromWireError(message.error));
  });
  worker.on('error', (error) => outcome.reject(error));
  worker.once('exit', (code) => outcome.reject(new Error(`The storage task ended with code ${code}`)));
  try {
    return await outcome.promise;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Starts threads from the module at `url`. */
export const startFrom =
  (url: URL): StartStorageThread =>
  (data) => {
    // The main thread's flags (`--input-type`, `--import`) do not apply to this module.
    return new Worker(url, { workerData: data, resourceLimits, execArgv: [], name: `storage-${data.role}` });
  };

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
