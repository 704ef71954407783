import { type ResourceLimits, Worker } from 'node:worker_threads';
import { AppError } from './app-error.ts';
import type { Clock } from './clock.ts';

export interface ThreadTask {
  readonly workerUrl: URL;
  /** Shown in the process list. */
  readonly name: string;
  /** Copied into the thread. */
  readonly data: unknown;
  readonly resourceLimits: ResourceLimits;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** What the thread reads, in errors: "The page". */
  readonly subject: string;
}

/**
 * Runs untrusted input through a thread and returns its only message; the thread is terminated whatever happens. Fails with
 * `payload_too_large` when it ends without an answer (it is out of memory), `timeout` and `cancelled`.
 */
export async function runInThread({ workerUrl, name, data, resourceLimits, timeoutMs, clock, signal, subject }: ThreadTask): Promise<unknown> {
  if (signal.aborted) throw new AppError('cancelled', `${subject} was not read to its end`);
  // No environment: it holds the keys of the installation. What parsers print is dropped.
  const worker = new Worker(workerUrl, { workerData: data, resourceLimits, env: {}, name, stdout: true, stderr: true });
  worker.stdout.resume();
  worker.stderr.resume();
  const outcome = Promise.withResolvers<unknown>();
  const onAbort = () => outcome.reject(new AppError('cancelled', `${subject} was not read to its end`));
  signal.addEventListener('abort', onAbort, { once: true });
  // A parser that keeps rescanning nested input would hold one of the few threads for ever.
  const cancel = clock.after(timeoutMs, () => outcome.reject(new AppError('timeout', `${subject} was not read within ${timeoutMs} ms`)));
  const tooLarge = (cause?: unknown) =>
    outcome.reject(new AppError('payload_too_large', `${subject} is too large or too broken to be read`, cause === undefined ? {} : { cause }));
  worker.once('message', outcome.resolve);
  worker.once('error', tooLarge);
  worker.once('exit', () => tooLarge());
  try {
    return await outcome.promise;
  } finally {
    cancel();
    signal.removeEventListener('abort', onAbort);
    await worker.terminate();
  }
}
