import type { Clock } from '../../clock.ts';
import type { ServerLife } from './connection.ts';
import { type Link, maxWaitMs } from './link.ts';
import { sqlState } from './postgres-errors.ts';

/** Longest time that the server may still work on a transaction whose connection ended: its time-outs end it. */
const settleMs = 8_000;
const askMs = 100;

/**
 * Finds out whether a transaction was committed whose answer was lost. A server that took over may have given its id to another
 * transaction, and so may one that crashed: there it means something only when no such transaction was committed.
 */
export async function findOutcome(
  { xid, timeline, recoveredAt }: { readonly xid: string } & ServerLife,
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
      if (connection.facts.recoveredAt !== recoveredAt) return status === 'aborted' ? 'aborted' : 'unknown';
      if (status === 'committed' || status === 'aborted') return status;
      if (status === null) return 'unknown';
      // In progress: the server has not noticed yet that the connection ended.
    } catch (error) {
      // "in the future": the crash lost it.
      if (sqlState(error) === '22023') return 'aborted';
      if (link.current === undefined && clock.monotonic() >= until) return 'unknown';
    }
    await new Promise<void>((resolve) => clock.after(askMs, resolve));
  }
  return 'unknown';
}
