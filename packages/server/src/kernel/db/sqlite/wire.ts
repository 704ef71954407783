import type { ErrorCode } from '@gatehouse/contract';
import { AppError, type ErrorDetails } from '../../app-error.ts';
import { type StartRefusal, StartError } from '../../lifecycle/start-error.ts';
import type { DbStatus } from '../db.ts';
import { explainSqliteError } from './sqlite-errors.ts';

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

export interface WireError {
  readonly kind: 'app' | 'start' | 'plain';
  readonly code?: string;
  readonly message: string;
  readonly details?: ErrorDetails;
  readonly stack?: string | undefined;
}

/** Errors lose their class in a structured clone, so they travel as data. The cause of an AppError stays behind: it may not be clonable. */
export function toWireError(thrown: unknown): WireError {
  const error = explainSqliteError(thrown);
  if (error instanceof AppError) {
    const { cause: _, ...details } = error.details;
    return { kind: 'app', code: error.code, message: error.message, details };
  }
  if (error instanceof StartError) return { kind: 'start', code: error.reason, message: error.message };
  if (error instanceof Error) return { kind: 'plain', message: error.message, stack: error.stack };
  return { kind: 'plain', message: String(error) };
}

export function fromWireError(wire: WireError): Error {
  switch (wire.kind) {
    case 'app':
      return new AppError(wire.code as ErrorCode, wire.message, wire.details);
    case 'start':
      return new StartError(wire.code as StartRefusal, wire.message);
    case 'plain': {
      const error = new Error(wire.message);
      if (wire.stack !== undefined) error.stack = wire.stack;
      return error;
    }
  }
}
