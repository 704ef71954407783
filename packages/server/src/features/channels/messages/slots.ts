import { createFifo } from '../../../kernel/fifo.ts';

/** Returns what runs tasks, at most `most` at the same time, in order of arrival. */
export function createSlots(most: number): <T>(run: () => Promise<T>) => Promise<T> {
  const waiting = createFifo<() => void>();
  let free = most;
  return async (run) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await run();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}
