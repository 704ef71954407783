import type { Reply } from './calls.ts';
import { createError, type GatehouseError } from './errors.ts';

interface Waiting {
  readonly method: string;
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number;
  /** How often the call may be sent again when the connection breaks before its answer arrives. */
  readonly repeats: number;
}

interface Entry {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly send: () => void;
  repeatsLeft: number;
}

export interface PendingCalls {
  /** Assigns the call an id, sends it with `send` and waits for the answer, the deadline, the signal or a failure of `send`. */
  add(call: Waiting, send: (id: number) => Promise<void>): Promise<unknown>;
  has(id: number): boolean;
  settle(id: number, outcome: Reply['outcome']): void;
  /** Handles a broken connection: sends retryable calls again with their own `send`; the rest fails. */
  lose(error: GatehouseError): void;
  rejectAll(error: GatehouseError): void;
}

/** Tracks the pending calls of one socket. */
export function createPendingCalls(): PendingCalls {
  const waiting = new Map<number, Entry>();
  let nextId = 1;

  return {
    async add({ method, signal, timeoutMs, repeats }, send) {
      signal?.throwIfAborted();
      const id = nextId;
      nextId += 1;
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      const onAbort = () => reject(signal?.reason);
      signal?.addEventListener('abort', onAbort, { once: true });
      const timer = setTimeout(
        () => reject(createError({ code: 'client_timeout', message: `No response to ${method} within ${timeoutMs} ms.` })),
        timeoutMs,
      );
      const entry: Entry = { resolve, reject, send: () => void send(id).catch(reject), repeatsLeft: repeats };
      waiting.set(id, entry);
      try {
        entry.send();
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
    lose(error) {
      for (const call of waiting.values()) {
        if (call.repeatsLeft === 0) call.reject(error);
        else {
          call.repeatsLeft -= 1;
          call.send();
        }
      }
    },
    rejectAll(error) {
      for (const call of waiting.values()) call.reject(error);
    },
  };
}
