import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { Log } from '../../../kernel/log.ts';
import { sleep } from '../../../kernel/timers.ts';
import type { DurableWork } from './api.ts';
import type { HeldWork } from './held-work.ts';
import { endWaitingWork, killWaitingWork, resumeAgentWork, type Resumed, resumePrincipalWork, resumeWork } from './store.ts';
import { waitForProvider } from './waiting.ts';

export interface WaitsDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly maxWaitMs: () => number;
  readonly held: HeldWork;
  /** Called when items became due. */
  readonly wake: () => void;
  /** Aborted when the daemon stops. */
  readonly stopping: AbortSignal;
}

const retryMs = 5_000;

/** How work waits, and what makes it due again. */
export function createWaits({ db, clock, log, maxWaitMs, held, wake, stopping }: WaitsDeps) {
  /** Returns false when the write failed and must be retried: otherwise the items would wait for hours or days. */
  async function resume(what: Omit<Resumed, 'atMs'>): Promise<boolean> {
    try {
      if ((await db.write(resumeWork, { ...what, atMs: clock.now() })) > 0) wake();
      return true;
    } catch (error) {
      if (!stopping.aborted) log.warn({ err: error, ...what }, 'Failed to resume waiting work; retrying');
      return false;
    }
  }

  async function resumeLater(what: Omit<Resumed, 'atMs'>): Promise<void> {
    do await sleep(clock, retryMs, stopping);
    while (!stopping.aborted && !(await resume(what)));
  }

  return {
    waitFor(item, ended) {
      const wait = waitForProvider(item.waiting, ended, { atMs: clock.now(), maxWaitMs: maxWaitMs() });
      const entry = held.find(item.id);
      if (entry !== undefined && wait !== undefined) entry.waitsFor = ended.model;
      return wait && { wait };
    },
    untilResumed: (agentId) => ({
      wait: { kind: 'agent', subject: agentId, untilMs: clock.now() + maxWaitMs(), cause: 'The agent is suspended' },
    }),
    async resumeWaiting(what) {
      if (!(await resume(what))) void resumeLater(what);
    },
    async endWaiting(what) {
      if (await db.write(endWaitingWork, { ...what, atMs: clock.now() })) wake();
    },
    async killWaiting(rootRunId) {
      const killed = await db.write(killWaitingWork, { rootRunId, atMs: clock.now() });
      if (killed > 0) wake();
      return killed;
    },
    async resumeAgent(agentId) {
      if ((await db.write(resumeAgentWork, { agentId, atMs: clock.now() })) > 0) wake();
    },
    async resumePrincipal(principalId) {
      if ((await db.write(resumePrincipalWork, { principalId, atMs: clock.now() })) > 0) wake();
    },
  } satisfies Partial<DurableWork>;
}
