import type { Adapter, Place } from '../../../channels/port.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { sleep } from '../../../kernel/timers.ts';

/** Platforms show it for 5 to 20 seconds. */
const everyMs = 4_000;
/** A turn that takes longer is not shown as being written. */
const longestMs = 5 * 60_000;

/** Shows in a conversation that an answer is being written, until it is disposed. Failures have no effect. */
export function showTyping(adapter: Adapter | undefined, place: Place, clock: Clock): Disposable {
  const stopping = new AbortController();
  const { signal } = stopping;
  async function run(): Promise<void> {
    for (let shownMs = 0; !signal.aborted && shownMs < longestMs; shownMs += everyMs) {
      await adapter?.typing?.(place, { signal });
      await sleep(clock, everyMs, signal);
    }
  }
  if (adapter?.typing !== undefined) void run();
  return { [Symbol.dispose]: () => stopping.abort() };
}
