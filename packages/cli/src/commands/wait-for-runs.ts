import type { Client } from '@gatehouse/client';
import type { Io } from '../io.ts';
import type { Waited } from './runs-text.ts';

/** Maximum wait of one call; longer waits repeat it. */
const roundMs = 60_000;
/** Maximum number of runs in one call. */
const perCall = 32;

/** Waits until all runs have ended or are unknown, or until the timeout; shows the remaining count in a terminal. */
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
    if (isTerminal) io.stderr.write(`\r${left.length} of ${ids.length} still running\x1b[K`);
    const wait = Math.min(roundMs, restMs);
    const answer = await client.call('subagent.wait', { runIds: left.slice(0, perCall), timeoutMs: wait }, { signal, timeoutMs: wait + roundMs });
    for (const one of answer.results) results.set(one.runId, one);
  }
  if (isTerminal) io.stderr.write('\r\x1b[K');
  return ids.flatMap((id) => results.get(id) ?? []);
}
