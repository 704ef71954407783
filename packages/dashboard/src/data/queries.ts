import { QueryClient } from '@tanstack/react-query';
import type { LiveEvents } from './live.ts';
import type { RequestQuota } from './request-quota.ts';

/** How events make loaded data stale. */
export interface Staleness {
  /** Prefixes of the kinds of events that report a change. A gap counts as one. */
  readonly changedBy: readonly string[];
  /** Delay after the last such event: a change often emits several. */
  readonly settleMs: number;
}

declare module '@tanstack/react-query' {
  interface Register {
    queryMeta: { readonly staleness?: Staleness };
  }
}

export interface Queries {
  readonly client: QueryClient;
  /** Aborts all requests and forgets all data. */
  close(): void;
}

/** Creates the store of what pages load, of one session. Events of the gateway invalidate it. */
export function createQueries(live: Pick<LiveEvents, 'listen'>, quota?: Pick<RequestQuota, 'pauseMs'>): Queries {
  const client = new QueryClient({
    defaultOptions: {
      queries: {
        // The client repeats failed reads on its own.
        retry: false,
        // A gateway on this machine is reachable offline, and each request counts against the rate limit of the token.
        networkMode: 'always',
        refetchOnWindowFocus: false,
        refetchOnReconnect: false,
        // Forms begin with loaded data, so data is not kept after its last reader.
        gcTime: 0,
        // Readers apply events to the newest answer, even one that equals the previous one.
        structuralSharing: false,
      },
    },
  });
  const timers = new Map<string, ReturnType<typeof setTimeout>>();
  const stop = live.listen(({ kind }) => {
    const pauseMs = quota?.pauseMs() ?? 0;
    for (const { queryHash, queryKey, meta } of client.getQueryCache().getAll()) {
      const staleness = meta?.staleness;
      if (staleness === undefined || !(kind === 'gap' || staleness.changedBy.some((prefix) => kind.startsWith(prefix)))) continue;
      // Events that continue would postpone it for ever.
      if (pauseMs > staleness.settleMs && timers.has(queryHash)) continue;
      clearTimeout(timers.get(queryHash));
      timers.set(
        queryHash,
        setTimeout(
          () => {
            timers.delete(queryHash);
            void reload(client, queryKey);
          },
          Math.max(staleness.settleMs, pauseMs),
        ),
      );
    }
  });
  return {
    client,
    close() {
      stop();
      for (const timer of timers.values()) clearTimeout(timer);
      client.clear();
    },
  };
}

/** Loads again what is shown. A request in flight starts over, because it may be older than the reason to load again. */
export async function reload(client: QueryClient, queryKey: readonly unknown[]): Promise<void> {
  const filters = { queryKey, exact: true, type: 'active' } as const;
  const query = client.getQueryCache().find(filters);
  // Only data is refetched at once: a first load would be joined instead.
  await (query?.state.data === undefined ? client.resetQueries(filters) : client.refetchQueries(filters));
}
