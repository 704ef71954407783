import type { MessagePort } from 'node:worker_threads';
import type { DbStatus } from '../db.ts';
import { Failure } from '../unit.ts';
import { toWireError, type WireError } from '../wire-error.ts';
import { explainSqliteError, isMediumFailure } from './sqlite-errors.ts';
import type { FromThread } from './wire.ts';

/** Posts the results of a batch, in the order of its calls. */
export function postAnswers(port: MessagePort, results: unknown[], { stored, moved }: { readonly stored: boolean; readonly moved: boolean }): void {
  const errors: [number, WireError][] = [];
  let state: DbStatus['state'] | undefined = stored ? 'ok' : undefined;
  const fail = (index: number, error: unknown) => {
    results[index] = undefined;
    errors.push([index, toWireError(explainSqliteError(error))]);
    if (isMediumFailure(error)) state = 'read_only';
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
