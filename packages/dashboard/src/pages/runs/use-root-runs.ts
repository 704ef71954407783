import { useEffect, useRef, useState } from 'react';
import { useSession } from '../../data/context.ts';
import type { FeedEntry } from '../../data/live.ts';
import { useEventBatch } from '../../data/use-event-batch.ts';
import { useLoad } from '../../data/use-load.ts';
import { applyEvents, runOf, type Runs } from './run-state.ts';

/** Maximum age that the gateway accepts; it keeps runs for a shorter time. */
export const allMinutes = 10_080;
const maxKept = 1000;

export interface RootRuns {
  readonly runs: Runs | undefined;
  readonly error: unknown;
  readonly reload: () => void;
}

/** Loads the sub-agents of a root once, then keeps them up to date from events. */
export function useRootRuns(rootRunId: string): RootRuns {
  const { client, admin } = useSession();
  const [runs, setRuns] = useState<Runs>();
  /** Events that arrived while a list was in flight, because the list may be older. */
  const recent = useRef<FeedEntry[]>([]);
  const { data, error, reload } = useLoad(['subagent.list', rootRunId], async (signal): Promise<Runs> => {
    recent.current = [];
    const listed = await client.call('subagent.list', { recentMinutes: allMinutes, ...(admin && { rootRunId }) }, { signal });
    return new Map(listed.runs.flatMap((one) => (one.rootRunId === rootRunId ? [[one.runId, runOf(one)] as const] : [])));
  });
  useEffect(() => {
    if (data !== undefined) setRuns(applyEvents(data, rootRunId, recent.current));
  }, [data, rootRunId]);
  useEventBatch('session:sub_agent_', (events) => {
    if (events.some(({ kind }) => kind === 'gap')) return reload();
    recent.current = [...recent.current, ...events].slice(-maxKept);
    setRuns((before) => before && applyEvents(before, rootRunId, events));
  });
  return { runs, error, reload };
}
