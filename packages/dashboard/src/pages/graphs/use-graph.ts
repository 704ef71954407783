import { useEffect, useRef, useState } from 'react';
import { useSession } from '../../data/context.ts';
import type { FeedEntry } from '../../data/live.ts';
import { useEventBatch } from '../../data/use-event-batch.ts';
import { useLoad } from '../../data/use-load.ts';
import { useThrottled } from '../../data/use-throttled.ts';
import { applyEvents, type GraphView } from './graph-state.ts';

const maxKept = 500;
const leastReloadMs = 4000;

export interface LiveGraph {
  readonly view: GraphView | undefined;
  readonly error: unknown;
  readonly reload: () => void;
}

/** Loads a graph run and keeps it up to date: events are shown at once, tokens and outputs follow with the next reload. */
export function useGraph(graphId: string): LiveGraph {
  const { client } = useSession();
  const [view, setView] = useState<GraphView>();
  const recent = useRef<FeedEntry[]>([]);
  const { data, error, reload } = useLoad(['graph.status', graphId], async (signal): Promise<GraphView> => {
    recent.current = [];
    const found = await client.call('graph.status', { graphId }, { signal });
    if (!('executionOrder' in found)) throw new Error('Unexpected answer: a list instead of a graph.');
    return found;
  });
  const reloadSoon = useThrottled(reload, leastReloadMs);
  useEffect(() => {
    if (data !== undefined) setView(applyEvents(data, recent.current));
  }, [data]);
  // No event reports that a node waits for an approval.
  useEventBatch('approval:', reloadSoon);
  useEventBatch('graph:', (events) => {
    const own = events.filter(({ kind, payload }) => kind === 'gap' || (payload as { graphId?: unknown } | null)?.graphId === graphId);
    if (own.length === 0) return;
    recent.current = [...recent.current, ...own].slice(-maxKept);
    setView((before) => before && applyEvents(before, own));
    reloadSoon();
  });
  return { view, error, reload };
}
