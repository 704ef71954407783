import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { AgentToAgentConfig } from '../config.ts';
import type { RunEvents } from './run-events.ts';
import { archiveRuns, findGhosts } from './sweep-store.ts';

const everyMs = 5 * 60_000;
/** What a run may take beyond its longest time before it counts as lost. */
const graceMs = 120_000;
/** Runs that ended and are kept. */
export const maxKept = 1000;
const dayMs = 86_400_000;
const keysMs = 8 * dayMs;
const atOnce = 500;

/** Every five minutes: ends runs that nothing ends any more, and takes old ones off the list. */
export function startSweep(deps: {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly config: AgentToAgentConfig;
  readonly events: RunEvents;
  /** Whether this process has the run and its watchdog has not fired: a wall clock that leapt ends nothing. */
  readonly isWatched: (runId: string) => boolean;
  /** Ends ghosts, with everything that they delegated. */
  readonly end: (runIds: readonly string[]) => Promise<void>;
}): AsyncDisposable {
  const { db, clock, log, config, events } = deps;
  let isStopped = false;
  let sweeping: Promise<void> = Promise.resolve();
  let cancel = later();

  function later(): () => void {
    return clock.after(everyMs, () => {
      sweeping = sweep()
        .catch((error: unknown) => log.error({ err: error }, 'Sub-agents could not be looked after'))
        .then(() => {
          if (!isStopped) cancel = later();
        });
    });
  }

  async function sweep(): Promise<void> {
    const nowMs = clock.ageNow();
    const late = await db.read(findGhosts, { beforeMs: nowMs - config.subagentContext.maxRunTimeoutMs - graceMs });
    const ghosts = late.filter((id) => !deps.isWatched(id));
    if (ghosts.length > 0) {
      log.error({ runs: ghosts.length }, 'Sub-agents that should have ended long ago are ended');
      await deps.end(ghosts);
    }
    const beforeMs = nowMs - config.subAgentRetentionMs;
    const archived = await db.write(archiveRuns, {
      beforeMs,
      untoldBeforeMs: beforeMs - dayMs,
      keysBeforeMs: nowMs - keysMs,
      kept: maxKept,
      limit: atOnce,
    });
    for (const row of archived) events.archived(row);
  }

  return {
    async [Symbol.asyncDispose]() {
      isStopped = true;
      cancel();
      await sweeping;
    },
  };
}
