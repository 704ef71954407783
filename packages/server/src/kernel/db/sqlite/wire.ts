import type { DbStatus } from '../db.ts';
import type { WireError } from '../wire-error.ts';

export const callKinds = { write: 0, telemetry: 1, read: 2 } as const;
export type CallKind = (typeof callKinds)[keyof typeof callKinds];

/**
 * Main thread to storage thread. Calls travel as one flat array of triples (kind, operation name, input): cloning one
 * array is cheaper than one object per call. Answers come back in the order of the calls, so no ids travel.
 */
export type ToThread = readonly unknown[] | 'close';

export type FromThread =
  | Answers
  | { readonly type: 'ready'; readonly schemaVersion: number; readonly applied: readonly string[] }
  | { readonly type: 'refused'; readonly error: WireError }
  | { readonly type: 'progress'; readonly done: number; readonly total: number }
  | { readonly type: 'done'; readonly result: unknown };

export interface Answers {
  readonly type: 'answers';
  readonly results: readonly unknown[];
  /** Pairs of index into `results` and error; absent in the usual case that all succeeded. */
  readonly errors?: readonly (readonly [number, WireError])[];
  /** What the batch showed about the disk; absent when nothing was written. */
  readonly state?: DbStatus['state'];
  /** The same of the second file. */
  readonly telemetryState?: DbStatus['state'];
  /** The files are no longer in place, so nothing of the batch was acknowledged. */
  readonly moved?: true;
}

/** What a thread is for; passed as its `workerData`. */
export type ThreadData =
  | {
      readonly role: 'writer';
      readonly dataDir: string;
      readonly backupsDir: string;
      readonly nowMs: number;
      readonly programVersion: string;
      /** Heartbeat of the main thread; the writer kills the process when it stops. */
      readonly heartbeat: SharedArrayBuffer | undefined;
    }
  /** `search` is a reader whose operations keep state. */
  | { readonly role: 'reader' | 'search'; readonly dataDir: string }
  | { readonly role: 'backup'; readonly sourceFile: string; readonly targetFile: string }
  | { readonly role: 'check'; readonly file: string };
