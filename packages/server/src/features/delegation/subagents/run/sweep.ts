import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { Log } from '../../../../kernel/log.ts';
import { repeat } from '../../../../kernel/timers.ts';
import type { AgentToAgentConfig } from '../config.ts';
import type { Live } from '../../../../kernel/config/live.ts';
import type { RunEvents } from './run-events.ts';
import { archiveRuns, findGhosts } from './sweep-store.ts';

const everyMs = 5 * 60_000;
/** Extra time beyond the maximum duration before a run counts as lost. */
const graceMs = 120_000;
/** Number of ended runs that are kept of each owner. */
export const maxKept = 1000;
const dayMs = 86_400_000;
const keysMs = 8 * dayMs;
const atOnce = 500;

/** Every five minutes, ends runs that nothing else will end, and removes old ones from the list. */
export function startSweep(deps: {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly bootId: string;
  readonly config: Live<AgentToAgentConfig>;
  readonly events: RunEvents;
  /** Whether this process holds the run and its watchdog has not fired; protects against jumps of the wall clock. */
  readonly isWatched: (runId: string) => boolean;
  /** Kills ghosts with everything that they delegated. */
  readonly end: (runIds: readonly string[]) => Promise<void>;
}): AsyncDisposable {
  const { db, clock, log, bootId, config, events } = deps;
  async function sweep(): Promise<void> {
    const nowMs = clock.ageNow();
    const late = await db.read(findGhosts, { beforeMs: nowMs - config.current.subagentContext.maxRunTimeoutMs - graceMs, bootId });
    const ghosts = late.filter((id) => !deps.isWatched(id));
    if (ghosts.length > 0) {
      log.error({ runs: ghosts.length }, 'Ending sub-agent runs that outlived their watchdog');
      await deps.end(ghosts);
    }
    const beforeMs = nowMs - config.current.subAgentRetentionMs;
    const archived = await db.write(archiveRuns, {
      beforeMs,
      unannouncedBeforeMs: beforeMs - dayMs,
      keysBeforeMs: nowMs - keysMs,
      kept: maxKept,
      limit: atOnce,
    });
    for (const row of archived) events.archived(row);
  }

  return repeat({ clock, everyMs, run: sweep, onError: (error) => log.error({ err: error }, 'Failed to sweep sub-agent runs') });
}
