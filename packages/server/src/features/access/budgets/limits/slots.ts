import { AppError } from '../../../../kernel/app-error.ts';
import { createFifo } from '../../../../kernel/fifo.ts';

/** Runs `running` tasks at once and queues `waiting` more in order; further ones fail with `unavailable`. */
export function createSlots(limits: { readonly running: number; readonly waiting: number }) {
  const queue = createFifo<() => void>();
  let running = 0;

  function release(): void {
    const next = queue.shift();
    if (next === undefined) running -= 1;
    else next();
  }

  function admitted(signal: AbortSignal): Promise<void> {
    if (running < limits.running) {
      running += 1;
      return Promise.resolve();
    }
    if (queue.size >= limits.waiting)
      throw new AppError('unavailable', `Too much background work waits for models (limit ${limits.waiting})`, { retryAfterMs: 1_000 });
    return new Promise((resolve, reject) => {
      const leave = queue.push(() => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      });
      const onAbort = () => {
        leave();
        reject(new AppError('cancelled', 'Aborted while waiting for a model'));
      };
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  return async function limited<T>(signal: AbortSignal, run: () => Promise<T>): Promise<T> {
    if (signal.aborted) throw new AppError('cancelled', 'Aborted before the work started');
    await admitted(signal);
    try {
      return await run();
    } finally {
      release();
    }
  };
}
