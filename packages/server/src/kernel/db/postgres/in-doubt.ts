import type { Clock } from '../../clock.ts';
import { type Link, maxWaitMs } from './link.ts';

/** Longest time that the server may still work on a transaction whose connection ended: its time-outs end it. */
const settleMs = 8_000;
const askMs = 100;

/**
 * Finds out whether a transaction was committed whose answer was lost. Its id means something only on the same timeline: a server
 * that took over may have given it to another transaction.
 */
export async function findOutcome(
  { xid, timeline }: { readonly xid: string; readonly timeline: string | null },
  link: Link,
  clock: Clock,
): Promise<'committed' | 'aborted' | 'unknown'> {
  const until = clock.monotonic() + settleMs + maxWaitMs;
  while (clock.monotonic() < until) {
    try {
      const connection = await link.acquire(until);
      if (timeline === null || connection.facts.timeline !== timeline) return 'unknown';
      const { rows } = await connection.execute(undefined, 'SELECT pg_xact_status($1::text::xid8) AS status', [xid]);
      const { status } = rows[0] as { status: string | null };
      if (status === 'committed' || status === 'aborted') return status;
      if (status === null) return 'unknown';
      // In progress: the server has not noticed yet that the connection ended.
    } catch {
      if (link.current === undefined && clock.monotonic() >= until) return 'unknown';
    }
    await new Promise<void>((resolve) => clock.after(askMs, resolve));
  }
  return 'unknown';
}
