import { rollUp } from '../../packages/server/src/features/access/budgets/store.ts';
import { beginNode } from '../../packages/server/src/features/operations/nodes/store.ts';
import { TraceRecorder } from '../../packages/server/src/features/operations/traces/recorder.ts';
import { systemClock } from '../../packages/server/src/kernel/clock.ts';
import { openDb } from '../../packages/server/src/kernel/db/sqlite/open-db.ts';
import { createLogger } from '../../packages/server/src/kernel/logger.ts';
import { commitTurn } from '../../packages/server/src/transactions/commit-turn.ts';
import { bootId, dayMs, type Pace, traceOf, turnsOf } from './year-day.ts';

/** Turns whose commits are pending at the same time. */
const atOnce = 250;

/** Ids of the turns of the newest day, and their traces. */
export interface FilledHome {
  readonly calls: number;
  readonly newest: readonly { readonly traceId: string; readonly turnId: string; readonly conversationRef: string }[];
}

/** Fills the database of a stopped daemon with the turns of the days before a time, their calls and their traces. */
export async function fillHome(dataDir: string, days: number, pace: Pace, endMs: number): Promise<FilledHome> {
  const { log } = createLogger({ level: 'fatal', redact: (line) => line, write: () => {} });
  const workerUrl = new URL('../../packages/server/src/storage-worker.ts', import.meta.url);
  await using db = await openDb({ dataDir, clock: systemClock, log, workerUrl });
  const beginning = { homeId: 'home', version: '0', role: 'active', leaseMs: 3_600_000, isSole: 1, atMs: endMs, prunedBeforeMs: 0 } as const;
  await db.write(beginNode, { ...beginning, bootId });
  const traces = new TraceRecorder({ db, clock: systemClock, log });
  let calls = 0;
  let newest: FilledHome['newest'] = [];
  for (let day = 0; day < days; day += 1) {
    const turns = turnsOf(day, endMs - (days - day) * dayMs, pace);
    for (let at = 0; at < turns.length; at += atOnce) {
      const some = turns.slice(at, at + atOnce);
      await Promise.all(some.map((turn) => db.write(commitTurn, turn)));
      for (const turn of some) traces.push(traceOf(turn));
      await traces.flush();
    }
    calls += turns.length * pace.callsPerTurn;
    newest = turns.slice(-100).map(({ turn }) => ({ traceId: turn.traceId, turnId: turn.id, conversationRef: turn.conversationRef }));
    while (await db.write(rollUp, { limit: 250 }));
  }
  return { calls, newest };
}
