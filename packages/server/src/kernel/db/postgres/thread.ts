import { Worker } from 'node:worker_threads';
import { AppError } from '../../app-error.ts';
import { fromWireError } from '../wire-error.ts';
import type { Guard } from './guard.ts';
import type { StorageFault } from './storage.ts';
import type { Answers, CallKind, FromThread, ThreadData, ToThread } from './wire.ts';

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export interface ThreadOptions {
  readonly workerUrl: URL;
  readonly data: ThreadData;
  /** Calls that may wait for an answer before more are refused. */
  readonly maxPending: number;
  readonly onFault?: (fault: StorageFault | undefined, reason: string | undefined) => void;
  /** A write was refused by the guard. */
  readonly onFenced?: () => void;
  /** The thread exited although nobody closed it; its calls were rejected. */
  readonly onCrash: (error: Error) => void;
}

type Ready = Omit<Extract<FromThread, { readonly type: 'ready' }>, 'type'>;

/** Heaps are small: rows pass through, nothing stays. */
const resourceLimits = { maxYoungGenerationSizeMb: 16, maxOldGenerationSizeMb: 512 };

/** The main thread's side of a thread of this engine. Calls of one tick travel together; answers come in any order. */
export class PostgresThread {
  readonly ready: Promise<Ready>;
  readonly #worker: Worker;
  readonly #options: ThreadOptions;
  readonly #exited: Promise<void>;
  readonly #pending = new Map<number, Pending>();
  #outbox: unknown[] = [];
  #lastId = 0;
  #isScheduled = false;
  #ended: Error | undefined;
  #closing = false;

  constructor(options: ThreadOptions) {
    this.#options = options;
    const { data } = options;
    // The main thread's flags (`--input-type`, `--import`) do not apply to this module.
    this.#worker = new Worker(options.workerUrl, { workerData: data, resourceLimits, execArgv: [], name: `storage-${data.role}` });
    const ready = Promise.withResolvers<Ready>();
    this.ready = ready.promise;
    this.ready.catch(() => {});
    this.#exited = new Promise((resolve) => {
      this.#worker.once('exit', (code) => {
        this.#end(new Error(`The storage thread ended with code ${code}`));
        ready.reject(this.#ended);
        resolve();
      });
    });
    this.#worker.on('error', (error) => this.#end(error instanceof Error ? error : new Error(String(error))));
    this.#worker.on('messageerror', (error) => this.#end(error));
    this.#worker.on('message', (message: FromThread) => {
      switch (message.type) {
        case 'answers':
          this.#settle(message);
          break;
        case 'ready':
          ready.resolve(message);
          break;
        case 'refused':
          this.#end(fromWireError(message.error));
          ready.reject(this.#ended);
          break;
        case 'fenced':
          options.onFenced?.();
          break;
        case 'fault':
          options.onFault?.(message.fault, message.reason);
          break;
      }
    });
  }

  get ended(): boolean {
    return this.#ended !== undefined;
  }

  call(kind: CallKind, operation: string, input: unknown): Promise<unknown> {
    if (this.#ended !== undefined || this.#closing) return Promise.reject(new AppError('unavailable', 'The storage is closed'));
    if (this.#pending.size >= this.#options.maxPending)
      return Promise.reject(new AppError('unavailable', 'The storage cannot keep up: too many operations wait'));
    const id = (this.#lastId += 1);
    this.#outbox.push(id, kind, operation, input);
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      // All sockets that were readable in this turn of the loop have been served when the message leaves.
      setImmediate(() => this.#send());
    }
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
    });
  }

  /** Keeps no later write unless this is the active node. */
  guard(guard: Guard): void {
    if (this.#ended === undefined && !this.#closing) this.#worker.postMessage({ guard } satisfies ToThread);
  }

  /** Waits until every call has been answered and the connections are closed. */
  async close(): Promise<void> {
    if (!this.#closing && this.#ended === undefined) {
      this.#send();
      this.#closing = true;
      this.#worker.postMessage('close' satisfies ToThread);
    }
    await this.#exited;
  }

  #send(): void {
    this.#isScheduled = false;
    const calls = this.#outbox;
    if (calls.length === 0 || this.#ended !== undefined) return;
    this.#outbox = [];
    try {
      this.#worker.postMessage(calls satisfies ToThread);
    } catch {
      // An input that is not plain data must not fail the other calls of its message.
      for (let at = 0; at < calls.length; at += 4) {
        try {
          this.#worker.postMessage(calls.slice(at, at + 4));
        } catch (error) {
          this.#take(calls[at] as number)?.reject(error);
        }
      }
    }
  }

  #settle({ ids, results, errors }: Answers): void {
    const answered = ids.map((id) => this.#take(id));
    for (const [index, error] of errors ?? []) answered[index]?.reject(fromWireError(error));
    // A promise that was rejected above ignores this.
    for (let index = 0; index < results.length; index++) answered[index]?.resolve(results[index]);
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }

  #end(error: Error): void {
    if (this.#ended !== undefined) return;
    this.#ended = error;
    const waiting = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of waiting)
      reject(new AppError('unavailable', 'The storage thread ended before it answered; whether the change was kept is not known', { cause: error }));
    if (!this.#closing) this.#options.onCrash(error);
  }
}
