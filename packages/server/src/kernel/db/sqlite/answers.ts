import type { MessagePort } from 'node:worker_threads';
import type { DbStatus } from '../db.ts';
import { Failure } from '../unit.ts';
import { toWireError, type WireError } from '../wire-error.ts';
import { explainSqliteError, isMediumFailure } from './sqlite-errors.ts';
import type { FromThread } from './wire.ts';

export interface BatchFacts {
  readonly stored: boolean;
  /** Whether something was stored in the second file. */
  readonly storedTelemetry: boolean;
  readonly moved: boolean;
  /** Whether the call at an index was for the second file. */
  readonly isTelemetry: (index: number) => boolean;
}

/** Posts the results of a batch, in the order of its calls. */
export function postAnswers(port: MessagePort, results: unknown[], { stored, storedTelemetry, moved, isTelemetry }: BatchFacts): void {
  const errors: [number, WireError][] = [];
  let state: DbStatus['state'] | undefined = stored ? 'ok' : undefined;
  let telemetryState: DbStatus['state'] | undefined = storedTelemetry ? 'ok' : undefined;
  const fail = (index: number, error: unknown) => {
    results[index] = undefined;
    errors.push([index, toWireError(explainSqliteError(error))]);
    if (!isMediumFailure(error)) return;
    if (isTelemetry(index)) telemetryState = 'read_only';
    else state = 'read_only';
  };
  for (let index = 0; index < results.length; index++) {
    const result = results[index];
    if (result instanceof Failure) fail(index, result.error);
  }
  const send = () =>
    port.postMessage({
      type: 'answers',
      results,
      ...(errors.length > 0 && { errors }),
      ...(state !== undefined && { state }),
      ...(telemetryState !== undefined && { telemetryState }),
      ...(moved && { moved }),
    } satisfies FromThread);
  try {
    send();
  } catch {
    // One result is not plain data; the others must not fail because of it.
    for (const [index, result] of results.entries()) {
      try {
        structuredClone(result);
      } catch (error) {
        fail(index, error);
      }
    }
    send();
  }
}
