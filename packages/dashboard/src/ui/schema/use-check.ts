import { useEffect, useState } from 'react';
import { type FieldErrors, fieldErrors } from '../../data/field-errors.ts';
import type { Change } from './changes.ts';

/** What the gateway says about changes that are not saved. */
export interface Check<Preview> {
  /** The changes that were checked. */
  readonly changes: readonly Change[];
  /** What the changes would do; undefined when they cannot be saved. */
  readonly preview: Preview | undefined;
  readonly errors: FieldErrors;
  readonly error: unknown;
}

const settleMs = 250;
const none: FieldErrors = new Map();
const nothing: Check<never> = { changes: [], preview: undefined, errors: none, error: undefined };

/**
 * Has the gateway validate the changes a moment after the last one, by a dry run of the call that saves them. Asks again when `version` of
 * what they change is another one. `ask` stays the same function.
 */
export function useCheck<Preview>(
  changes: readonly Change[],
  version: string,
  ask: (changes: readonly Change[], signal: AbortSignal) => Promise<Preview>,
): Check<Preview> {
  const [check, setCheck] = useState<Check<Preview>>(nothing);
  useEffect(() => {
    if (changes.length === 0) return undefined;
    const abort = new AbortController();
    const run = async (): Promise<void> => {
      try {
        setCheck({ changes, preview: await ask(changes, abort.signal), errors: none, error: undefined });
      } catch (error) {
        if (!abort.signal.aborted) setCheck({ changes, preview: undefined, errors: fieldErrors(error), error });
      }
    };
    const timer = setTimeout(() => void run(), settleMs);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [changes, version, ask]);
  return changes.length === 0 ? nothing : check;
}
