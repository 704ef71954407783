import { Worker } from 'node:worker_threads';
import { type ErrorCode, errorCatalogue } from '@gatehouse/contract/errors';
import { AppError } from '../../../../kernel/app-error.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { JailedProcess } from '../../../../kernel/jail.ts';
import type { Driver } from './driver.ts';
import type { DriverOptions, FromThread, RequestName, Requests, ToThread } from './protocol.ts';

export type Answer<K extends RequestName> = Awaited<ReturnType<Driver[K]>>;

const resourceLimits = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 };
/** Beyond this the browser waits until the thread has read what it sent. */
const maxUnreadBytes = 8 * 1024 * 1024;
const maxUnsentBytes = 64 * 1024 * 1024;

interface ThreadEvents {
  downloading(): void;
  downloaded(download: { readonly name: string; readonly path: string | undefined }): void;
}

/** The thread that drives a browser through its pipe. */
export class BrowserThread {
  readonly ready: Promise<string>;
  readonly #worker: Worker;
  readonly #clock: Clock;
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  #last = 0;
  #gone: AppError | undefined;

  constructor(clock: Clock, process: JailedProcess, options: DriverOptions, on: ThreadEvents) {
    this.#clock = clock;
    // No environment: it holds the keys of the installation.
    const worker = new Worker(workerUrl(), { workerData: options, resourceLimits, env: {}, name: 'browser', stdout: true, stderr: true });
    this.#worker = worker;
    worker.unref();
    worker.stdout.resume();
    worker.stderr.resume();
    const ready = Promise.withResolvers<string>();
    this.ready = ready.promise;
    this.ready.catch(() => {});
    let unread = 0;
    process.stdout.on('data', (bytes: Buffer) => {
      unread += bytes.byteLength;
      if (unread > maxUnreadBytes) process.stdout.pause();
      this.#post({ kind: 'bytes', bytes: Uint8Array.from(bytes) });
    });
    worker.on('message', (message: FromThread) => {
      switch (message.kind) {
        case 'ready':
          return ready.resolve(message.chromeVersion);
        case 'failed':
          return ready.reject(new AppError('unavailable', `The browser did not start: ${message.message}`));
        case 'send':
          if (process.stdin.writableLength > maxUnsentBytes) return process.kill();
          return void process.stdin.write(`${message.text}\0`);
        case 'read':
          unread -= message.bytes;
          return void (unread <= maxUnreadBytes && process.stdout.resume());
        case 'answer':
          return this.#pending.get(message.id)?.resolve(message.result);
        case 'error': {
          const { code, param } = message;
          const error = new AppError(isErrorCode(code) ? code : 'internal', message.message, param === undefined ? {} : { param });
          return this.#pending.get(message.id)?.reject(error);
        }
        case 'downloading':
          return on.downloading();
        case 'download':
          return on.downloaded(message);
      }
    });
    const fail = (why: string) => {
      process.kill();
      this.end(why);
      ready.reject(this.#gone);
    };
    worker.on('error', (error) =>
      fail(isOutOfMemory(error) ? 'what its pages sent needed too much memory' : `the thread that drives it failed: ${messageOf(error)}`),
    );
    worker.on('exit', () => fail('the thread that drives it ended'));
  }

  /** Fails with `timeout` when there is no answer in time, and with `cancelled` when `signal` is aborted; the request continues in both cases. */
  async ask<K extends RequestName>(name: K, args: Requests[K], timeoutMs: number, signal?: AbortSignal): Promise<Answer<K>> {
    if (this.#gone !== undefined) throw this.#gone;
    if (signal?.aborted === true) throw cancelled();
    const id = (this.#last += 1);
    const answer = Promise.withResolvers<unknown>();
    this.#pending.set(id, answer);
    const cancel = this.#clock.after(timeoutMs, () => answer.reject(new AppError('timeout', `The browser did not answer within ${timeoutMs} ms`)));
    const onAbort = () => answer.reject(cancelled());
    signal?.addEventListener('abort', onAbort, { once: true });
    this.#post({ kind: 'ask', id, name, args });
    try {
      return (await answer.promise) as Answer<K>;
    } finally {
      cancel();
      signal?.removeEventListener('abort', onAbort);
      this.#pending.delete(id);
    }
  }

  /** Everything pending, and every later request, fails with this reason. */
  end(why: string): void {
    this.#gone ??= new AppError('unavailable', `The browser is gone: ${why}`);
    for (const { reject } of this.#pending.values()) reject(this.#gone);
    this.#pending.clear();
    void this.#worker.terminate();
  }

  #post(message: ToThread): void {
    if (this.#gone === undefined) this.#worker.postMessage(message);
  }
}

const isOutOfMemory = (error: unknown) => error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error)).slice(0, 300);
const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(errorCatalogue, code);
const cancelled = () => new AppError('cancelled', 'The step was stopped; what it began in the page may still happen');

/** The bundle has the worker next to the server. */
function workerUrl(): URL {
  return new URL(import.meta.url.endsWith('.ts') ? './browser-worker.ts' : './browser-worker.js', import.meta.url);
}
