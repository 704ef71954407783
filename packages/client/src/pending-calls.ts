import type { Reply } from './calls.ts';
import { createError, type GatehouseError } from './errors.ts';

interface Waiting {
  readonly method: string;
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number;
}

export interface PendingCalls {
  /** Gives the call an id, lets `send` send it and waits for its answer, the deadline, the signal or a failure of `send`. */
  add(call: Waiting, send: (id: number) => Promise<void>): Promise<unknown>;
  has(id: number): boolean;
  settle(id: number, outcome: Reply['outcome']): void;
  rejectAll(error: GatehouseError): void;
}

/** The calls of one socket that wait for their answers. */
export function createPendingCalls(): PendingCalls {
  const waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: unknown) => void }>();
  let nextId = 1;

  return {
    async add({ method, signal, timeoutMs }, send) {
      signal?.throwIfAborted();
      const id = nextId;
      nextId += 1;
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      const onAbort = () => reject(signal?.reason);
      signal?.addEventListener('abort', onAbort, { once: true });
      const timer = setTimeout(
        () => reject(createError({ code: 'client_timeout', message: `No answer to ${method} within ${timeoutMs} ms.` })),
        timeoutMs,
      );
      waiting.set(id, { resolve, reject });
      try {
        send(id).catch(reject);
        return await promise;
      } finally {
        waiting.delete(id);
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
      }
    },
    has: (id) => waiting.has(id),
    settle(id, outcome) {
      const call = waiting.get(id);
      if (outcome.ok) call?.resolve(outcome.result);
      else call?.reject(outcome.error);
    },
    rejectAll(error) {
      for (const call of waiting.values()) call.reject(error);
    },
  };
}
