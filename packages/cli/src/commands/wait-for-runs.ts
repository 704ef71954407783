import type { Client } from '@gatehouse/client';
import type { Io } from '../io.ts';
import type { Waited } from './runs-text.ts';

/** One call waits so long; then it is asked again. */
const roundMs = 60_000;
/** As many runs as one call takes. */
const perCall = 32;

/** Waits until all runs have ended, are not known, or the time is over; tells in a terminal how many are left. */
export async function waitForRuns(
  client: Client,
  ids: readonly string[],
  { io, signal, timeoutMs }: { readonly io: Io; readonly signal: AbortSignal; readonly timeoutMs: number | undefined },
): Promise<readonly Waited[]> {
  const results = new Map<string, Waited>();
  const deadline = timeoutMs === undefined ? undefined : io.now() + timeoutMs;
  const isTerminal = io.stdout.isTTY === true;
  for (;;) {
    const left = ids.filter((id) => (results.get(id)?.status ?? 'timeout') === 'timeout');
    const restMs = deadline === undefined ? roundMs : Math.max(0, deadline - io.now());
    if (left.length === 0 || (results.size > 0 && restMs === 0)) break;
    if (isTerminal) io.stderr.write(`\r${left.length} of ${ids.length} still run\x1b[K`);
    const wait = Math.min(roundMs, restMs);
    const told = await client.call('subagent.wait', { runIds: left.slice(0, perCall), timeoutMs: wait }, { signal, timeoutMs: wait + roundMs });
    for (const one of told.results) results.set(one.runId, one);
  }
  if (isTerminal) io.stderr.write('\r\x1b[K');
  return ids.flatMap((id) => results.get(id) ?? []);
}
