import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { fileURLToPath } from 'node:url';
import { AppError } from './app-error.ts';
import type { Clock } from './clock.ts';
import { missingPart } from './missing-part.ts';

export interface ProcessTask {
  /** Calls `answerTask`. */
  readonly program: URL;
  /** JSON that says what to do with the input. */
  readonly order: object;
  /** Untrusted bytes. */
  readonly input: Uint8Array;
  /** Most memory for objects; buffers and WebAssembly are not counted. */
  readonly memoryMb: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** What is read, in errors: "The document". */
  readonly subject: string;
}

/**
 * Runs untrusted input through a separate process and returns its only message; the process is killed whatever happens. Unlike a thread it
 * returns all memory that it took. Fails with `payload_too_large` when it ends without an answer (it is out of memory), `timeout` and `cancelled`,
 * and with `unavailable` when it cannot be started.
 */
export async function runInProcess({ program, order, input, memoryMb, timeoutMs, clock, signal, subject }: ProcessTask): Promise<unknown> {
  if (signal.aborted) throw new AppError('cancelled', `${subject} was not read to its end`);
  const cache = getCompileCacheDir();
  const argv = [process.execPath, `--max-old-space-size=${memoryMb}`, '--max-semi-space-size=8', fileURLToPath(program), JSON.stringify(order)];
  // While it computes it does not notice that the daemon was killed: the system ends it then. Threads that collect garbage count as well.
  const cpuSeconds = Math.ceil((timeoutMs * 1.5) / 1_000) + 1;
  const child = spawn('/bin/sh', ['-c', 'ulimit -t "$0"; exec "$@"', String(cpuSeconds), ...argv], {
    // Nothing else of the environment: it holds the keys of the installation.
    env: cache === undefined ? {} : { NODE_COMPILE_CACHE: cache },
    serialization: 'advanced',
    // What parsers print is dropped.
    stdio: ['pipe', 'ignore', 'ignore', 'ipc'],
  });
  const closed = new Promise((resolve) => child.once('close', resolve));
  const outcome = Promise.withResolvers<unknown>();
  const onAbort = () => outcome.reject(new AppError('cancelled', `${subject} was not read to its end`));
  signal.addEventListener('abort', onAbort, { once: true });
  // A parser that keeps rescanning nested input would hold one of the few processes for ever.
  const cancel = clock.after(timeoutMs, () => outcome.reject(new AppError('timeout', `${subject} was not read within ${timeoutMs} ms`)));
  child.once('message', outcome.resolve);
  child.once('error', (error) =>
    outcome.reject(new AppError('unavailable', `${subject} was not read: its process could not be started`, { cause: error })),
  );
  // All that it sent was received before.
  child.once('disconnect', () =>
    outcome.reject(
      existsSync(program)
        ? new AppError('payload_too_large', `${subject} is too large or too broken to be read`)
        : new AppError('unavailable', missingPart),
    ),
  );
  // It may end before it has read everything.
  child.stdin?.on('error', () => {}).end(input);
  try {
    return await outcome.promise;
  } finally {
    cancel();
    signal.removeEventListener('abort', onAbort);
    child.kill('SIGKILL');
    await closed;
  }
}
