import { AppError } from '../../../../kernel/app-error.ts';
import { createFifo } from '../../../../kernel/fifo.ts';

/** Queued calls of one server. */
const maxWaiting = 100;

export interface CallQueue {
  /** Runs `work` when fewer than `limit` others run, in order of arrival. Fails with `unavailable` when the queue is full, and with `cancelled` when the caller leaves before its turn. */
  run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T>;
}

export function createCallQueue(server: string, limit: number): CallQueue {
  const waiting = createFifo<() => void>();
  let running = 0;

  async function turn(signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw cancelled(server);
    if (running < limit) {
      running += 1;
      return;
    }
    if (waiting.size >= maxWaiting) throw new AppError('unavailable', `Too many calls wait for the MCP server "${server}" (limit ${maxWaiting})`);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const leave = waiting.push(resolve);
    const onAbort = () => {
      leave();
      reject(cancelled(server));
    };
    signal.addEventListener('abort', onAbort, { once: true });
    // A finished call passes its slot on without releasing it.
    await promise.finally(() => signal.removeEventListener('abort', onAbort));
  }

  return {
    async run(signal, work) {
      await turn(signal);
      try {
        return await work();
      } finally {
        const next = waiting.shift();
        if (next === undefined) running -= 1;
        else next();
      }
    },
  };
}

function cancelled(server: string): AppError {
  return new AppError('cancelled', `The call of the MCP server "${server}" was abandoned before its turn`);
}
