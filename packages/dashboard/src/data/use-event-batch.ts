import { useEffect, useEffectEvent } from 'react';
import { useSession } from './context.ts';
import type { FeedEntry } from './live.ts';

const batchMs = 100;
/** Timers of a hidden page fire late, so the number of waiting events is bounded. */
const maxWaiting = 2000;

/**
 * Passes on events whose kind has one of these prefixes (separated by commas), in batches: with
 * hundreds of sub-agents, every single event would redraw the page. A gap is passed on as an event.
 */
export function useEventBatch(prefixes: string, onBatch: (events: readonly FeedEntry[]) => void): void {
  const { live } = useSession();
  const run = useEffectEvent(onBatch);
  useEffect(() => {
    const wanted = prefixes.split(',');
    let waiting: FeedEntry[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = live.listen((entry) => {
      if (entry.kind !== 'gap' && !wanted.some((prefix) => entry.kind.startsWith(prefix))) return;
      waiting.push(entry);
      if (waiting.length > maxWaiting) waiting = [{ ...entry, kind: 'gap', payload: {} }];
      timer ??= setTimeout(() => {
        timer = undefined;
        const batch = waiting;
        waiting = [];
        run(batch);
      }, batchMs);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [live, prefixes]);
}
