import type { ResultInput } from '@gatehouse/contract';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import { findRuns, listRuns } from './list-store.ts';
import { markSeen } from '../completion/announcement-store.ts';
import { reachOf } from './reach.ts';
import { isEnded, type RunRow } from '../run/row.ts';
import { completionFor } from './view.ts';
import type { Waiters } from './waiters.ts';

/** Maximum number of runs per wait. */
const maxRuns = 32;
/** Maximum age of an unannounced completion that a wait still includes; longer than a turn lasts. */
const unannouncedMs = 60 * 60_000;

interface WaitDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly waiters: Waiters;
  /** Aborted when the daemon stops. */
  readonly stopping: AbortSignal;
  /** Lends the slot of a sub-agent while it waits. */
  readonly lend: (runId: string) => () => void;
}

type Answer = ResultInput<'subagent.wait'>['results'][number];

/** `subagent.wait`: answers at once for invisible and ended runs, and for the others when they end or the time is over. */
export function createWait({ db, clock, waiters, stopping, lend }: WaitDeps) {
  return async (
    asked: readonly string[] | undefined,
    timeoutMs: number,
    call: CallContext,
  ): Promise<{ readonly results: Answer[]; readonly rows: readonly RunRow[] }> => {
    const reach = reachOf(call);
    const ids = asked === undefined ? await awaitedRuns(reach, call) : [...new Set(asked)];
    let changed = Promise.withResolvers<void>();
    const wake = () => changed.resolve();
    const unlisten = waiters.listen(ids, wake);
    const signal = AbortSignal.any([call.signal, stopping]);
    signal.addEventListener('abort', wake, { once: true });
    let isOver = timeoutMs === 0;
    const cancelTimer = isOver ? () => {} : clock.after(timeoutMs, () => ((isOver = true), wake()));
    const runId = call.agentCaller?.turn?.run?.runId;
    let reclaim: (() => void) | undefined;
    try {
      for (;;) {
        // Before the query, so that a run that ends during it is checked again.
        changed = Promise.withResolvers();
        const rows = await find(ids, reach);
        if (isOver || signal.aborted || [...rows.values()].every(isEnded)) {
          await see([...rows.values()], call);
          return { results: ids.map((id) => answerOf(id, rows.get(id), signal.aborted, call)), rows: [...rows.values()] };
        }
        if (runId !== undefined) reclaim ??= lend(runId);
        await changed.promise;
      }
    } finally {
      cancelTimer();
      signal.removeEventListener('abort', wake);
      unlisten();
      reclaim?.();
    }
  };

  /** Returns the open runs and, for an agent, those that ended before it asked. */
  async function awaitedRuns(reach: ReturnType<typeof reachOf>, call: CallContext): Promise<string[]> {
    const list = (sinceMs: number) => db.read(listRuns, { ...reach, agentId: null, rootRunId: null, sinceMs, limit: maxRuns });
    const nowMs = clock.now();
    const open = (await list(nowMs + 1)).filter((row) => !isEnded(row));
    const unannounced =
      call.agentCaller === undefined ? [] : (await list(nowMs - unannouncedMs)).filter((row) => isEnded(row) && row.announced === 'pending');
    return [...open, ...unannounced].slice(0, maxRuns).map(({ id }) => id);
  }

  async function find(ids: readonly string[], reach: ReturnType<typeof reachOf>): Promise<Map<string, RunRow>> {
    if (ids.length === 0) return new Map();
    return new Map((await db.read(findRuns, { ...reach, ids })).map((row) => [row.id, row]));
  }

  /** Marks what the turn of the requester was shown, so that it is not announced again. */
  async function see(rows: readonly RunRow[], { agentCaller }: CallContext): Promise<void> {
    const runIds = rows.filter((row) => isEnded(row) && row.announced === 'pending').map(({ id }) => id);
    if (agentCaller?.turn === undefined || runIds.length === 0) return;
    await db.write(markSeen, { runIds, turnId: agentCaller.turn.turnId, requesterRef: agentCaller.conversationRef });
  }
}

function answerOf(runId: string, row: RunRow | undefined, isCancelled: boolean, call: CallContext): Answer {
  if (row === undefined) return { runId, status: 'denied_unknown' };
  const completion = completionFor(row, call);
  if (completion !== undefined) return { runId, status: 'completed', completion };
  return { runId, status: isCancelled ? 'cancelled' : 'timeout' };
}
