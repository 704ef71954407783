import { useEffect, useRef, useState } from 'react';
import { useSession } from '../../data/context.ts';
import type { FeedEntry } from '../../data/live.ts';
import { useEventBatch } from '../../data/use-event-batch.ts';
import { useLoad } from '../../data/use-load.ts';
import { usePaced } from '../../data/use-paced.ts';
import { applyEvents, type GraphView } from './graph-state.ts';

const maxKept = 500;
const leastReloadMs = 4000;

export interface LiveGraph {
  readonly view: GraphView | undefined;
  readonly error: unknown;
  readonly reload: () => void;
}

/** One run of a graph, as it goes: what the event stream tells is shown at once, tokens and outputs follow with the next list. */
export function useGraph(graphId: string): LiveGraph {
  const { client } = useSession();
  const [view, setView] = useState<GraphView>();
  const told = useRef<FeedEntry[]>([]);
  const { data, error, reload } = useLoad(`graph ${graphId}`, async (signal): Promise<GraphView> => {
    told.current = [];
    const found = await client.call('graph.status', { graphId }, { signal });
    if (!('executionOrder' in found)) throw new Error('The gateway answered with a list.');
    return found;
  });
  const reloadSoon = usePaced(reload, leastReloadMs);
  useEffect(() => {
    if (data !== undefined) setView(applyEvents(data, told.current));
  }, [data]);
  // A node that waits for an approval tells nothing itself.
  useEventBatch('approval:', reloadSoon);
  useEventBatch('graph:', (events) => {
    const own = events.filter(({ kind, payload }) => kind === 'gap' || (payload as { graphId?: unknown } | null)?.graphId === graphId);
    if (own.length === 0) return;
    told.current = [...told.current, ...own].slice(-maxKept);
    setView((before) => before && applyEvents(before, own));
    reloadSoon();
  });
  return { view, error, reload };
}
