import { useQuery } from '@tanstack/react-query';
import { useCallback, useEffect, useRef } from 'react';
import { useSession } from './context.ts';
import { isRateLimited } from './errors.ts';
import { reload } from './queries.ts';

/** The state of a load. Earlier data stays visible during a reload. */
export interface Loaded<T> {
  readonly data: T | undefined;
  readonly error: unknown;
  readonly loading: boolean;
  readonly reload: () => void;
}

export interface LoadOptions {
  /** Reloads a moment after an event whose kind has one of these prefixes, or a gap. */
  readonly changedBy?: readonly string[];
  /** Replaces the delay after such an event. */
  readonly settleMs?: number;
  /** True when the data of the previous key is shown until that of the new one is loaded. */
  readonly keepsPrevious?: (previousKey: readonly unknown[]) => boolean;
  /** False while nothing is to be loaded. */
  readonly enabled?: boolean;
}

const defaultSettleMs = 400;

/**
 * Loads on mount, when `key` changes and on `reload`. The key begins with the name of what is loaded and lists everything that
 * `load` depends on: components with the same key share one request.
 */
export function useLoad<T>(key: readonly unknown[], load: (signal: AbortSignal) => Promise<T>, options: LoadOptions = {}): Loaded<T> {
  const { changedBy, settleMs = defaultSettleMs, keepsPrevious, enabled = true } = options;
  const { client } = useSession().queries;
  const query = useQuery<{ readonly value: T }>(
    {
      queryKey: key,
      enabled,
      // In an object, because the data of a query must not be undefined.
      queryFn: async ({ signal }) => ({ value: await load(signal) }),
      meta: changedBy === undefined ? {} : { staleness: { changedBy, settleMs } },
      placeholderData: (data, previous) => (previous !== undefined && keepsPrevious?.(previous.queryKey) === true ? data : undefined),
    },
    client,
  );
  const latestKey = useRef(key);
  useEffect(() => {
    latestKey.current = key;
  });
  const reloadNow = useCallback(() => void reload(client, latestKey.current), [client]);
  const { error } = query;
  useEffect(() => {
    // The request limit frees on its own: a page that was opened too soon fills without a click.
    if (!isRateLimited(error)) return;
    const timer = setTimeout(reloadNow, error.retryAfterMs);
    return () => clearTimeout(timer);
  }, [error, reloadNow]);
  const loading = query.isFetching || (query.isPending && enabled);
  return { data: query.data?.value, error: loading ? undefined : (error ?? undefined), loading, reload: reloadNow };
}
