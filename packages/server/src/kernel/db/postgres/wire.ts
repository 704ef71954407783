import type { WireError } from '../wire-error.ts';
import type { ServerAddress } from './server-address.ts';
import type { Guard } from './guard.ts';
import type { StorageFault } from './storage.ts';

export const callKinds = { write: 0, telemetry: 1, read: 2, bytes: 3 } as const;
export type CallKind = (typeof callKinds)[keyof typeof callKinds];

/**
 * Main thread to storage thread: calls of one tick in one flat array of fours (id, kind, operation name, input). Lanes finish in any
 * order, so answers name the call.
 */
export type ToThread = readonly unknown[] | 'close' | { readonly guard: Guard };

export type FromThread =
  | Answers
  | {
      readonly type: 'ready';
      readonly schemaVersion: number;
      readonly programSchema: number;
      readonly applied: readonly string[];
      readonly serverVersion: string;
      readonly warnings: readonly string[];
    }
  | { readonly type: 'refused'; readonly error: WireError }
  /** A write was refused by the guard. */
  | { readonly type: 'fenced' }
  /** Writes are not accepted, or are again. */
  | { readonly type: 'fault'; readonly fault: StorageFault | undefined; readonly reason: string | undefined };

export interface Answers {
  readonly type: 'answers';
  readonly ids: readonly number[];
  readonly results: readonly unknown[];
  /** Pairs of index into `results` and error; absent in the usual case that all succeeded. */
  readonly errors?: readonly (readonly [number, WireError])[];
}

/** What a thread is for; passed as its `workerData`. */
export interface ThreadData {
  /** `postgres-check` connects, reports what it finds, changes nothing and ends. */
  readonly role: 'postgres' | 'postgres-search' | 'postgres-check';
  readonly address: ServerAddress;
  readonly poolSize: number;
  readonly programVersion: string;
  /** Heartbeat of the main thread; the thread kills the process when it stops. */
  readonly heartbeat: SharedArrayBuffer | undefined;
}
