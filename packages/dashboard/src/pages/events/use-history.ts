import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { toEntries } from '../../data/event-history.ts';
import type { FeedEntry } from '../../data/live.ts';
import { useLoad } from '../../data/use-load.ts';
import type { EventFilters } from './filters.ts';

const pageSize = 100;

export interface History {
  /** Oldest first. */
  readonly entries: readonly FeedEntry[];
  readonly error: unknown;
  readonly loading: boolean;
  /** Absent when there are no earlier ones. */
  readonly loadOlder: (() => void) | undefined;
  readonly reload: () => void;
}

/** Stored events that match, the newest page first; earlier pages on request. */
export function useHistory({ kind, sinceMs, untilMs }: EventFilters): History {
  const { client } = useSession();
  const filter = { kind, since: sinceMs, until: untilMs };
  const key = JSON.stringify(filter);
  const [older, setOlder] = useState<{ readonly key: string; readonly entries: readonly FeedEntry[]; readonly isAll: boolean }>();
  const [loading, setLoading] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  const first = useLoad(['activity', filter], async (signal) => toEntries(await client.activity({ limit: pageSize, ...filter }, { signal })));
  const before = older?.key === key ? older : undefined;
  const entries = [...(before?.entries ?? []), ...(first.data ?? [])];
  const oldestId = entries[0]?.id;

  async function loadOlder(): Promise<void> {
    setLoading(true);
    setFailure(undefined);
    try {
      const page = toEntries(await client.activity({ limit: pageSize, ...filter, before: oldestId }));
      setOlder({ key, entries: [...page, ...(before?.entries ?? [])], isAll: page.length < pageSize });
    } catch (error) {
      setFailure(error);
    } finally {
      setLoading(false);
    }
  }

  const hasMore = before === undefined ? (first.data?.length ?? 0) === pageSize : !before.isAll;
  return {
    entries,
    error: first.error ?? failure,
    loading: loading || first.loading,
    loadOlder: hasMore && oldestId !== undefined ? () => void loadOlder() : undefined,
    reload: first.reload,
  };
}
