import type { Result } from '@gatehouse/contract';
import { useEffect, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { type FieldErrors, fieldErrors } from '../../data/field-errors.ts';
import type { Change } from '../../ui/schema/changes.ts';
import { wirePath } from '../../ui/schema/paths.ts';

export type Preview = Result<'config.patch'>;

/** What the gateway says about changes that are not saved. */
export interface Check {
  /** The changes that were checked. */
  readonly changes: readonly Change[];
  /** What the changes would do; undefined when they cannot be saved. */
  readonly preview: Preview | undefined;
  readonly errors: FieldErrors;
  readonly error: unknown;
}

const settleMs = 350;
const none: FieldErrors = new Map();
const nothing: Check = { changes: [], preview: undefined, errors: none, error: undefined };

/** Has the gateway validate the changes a moment after the last one. Nothing is written. */
export function useCheck(changes: readonly Change[], digest: string): Check {
  const { client } = useSession();
  const [check, setCheck] = useState<Check>(nothing);
  useEffect(() => {
    if (changes.length === 0) return undefined;
    const abort = new AbortController();
    const ask = async (): Promise<void> => {
      try {
        const preview = await client.call('config.patch', { changes: toWire(changes), dryRun: true, confirm: true }, { signal: abort.signal });
        setCheck({ changes, preview, errors: none, error: undefined });
      } catch (error) {
        if (!abort.signal.aborted) setCheck({ changes, preview: undefined, errors: fieldErrors(error), error });
      }
    };
    const timer = setTimeout(() => void ask(), settleMs);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [client, changes, digest]);
  return changes.length === 0 ? nothing : check;
}

export function toWire(changes: readonly Change[]): { path: string; value: unknown }[] {
  return changes.map(({ path, value }) => ({ path: wirePath(path), value }));
}
