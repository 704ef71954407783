import { useEffect, useEffectEvent } from 'react';
import { useSession } from './context.ts';
import type { FeedEntry } from './live.ts';

const batchMs = 100;
/** A page that is hidden hears its timers late; what piles up meanwhile is bounded. */
const maxWaiting = 2000;

/**
 * Hands on what the event stream told of kinds with one of these prefixes (between commas), all of a moment at once: with
 * hundreds of sub-agents each event alone would draw the page again. A gap is handed on as an event.
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
