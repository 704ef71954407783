import { claimOccurrence } from '../../packages/server/src/transactions/claim-occurrence.ts';
import { planClaim } from '../../packages/server/src/features/unattended/cron/occurrences/claim.ts';
import { finishOf } from '../../packages/server/src/features/unattended/cron/occurrences/finish.ts';
import { parseJob } from '../../packages/server/src/features/unattended/cron/jobs/job.ts';
import { dueJobs } from '../../packages/server/src/features/unattended/cron/store.ts';
import { CronWork } from '../../packages/server/src/features/unattended/cron/occurrences/work.ts';
import { cronWork } from '../../packages/server/src/features/unattended/cron/occurrences/work-kind.ts';
import { claimWork } from '../../packages/server/src/features/unattended/durable/store.ts';
import { finishOccurrence } from '../../packages/server/src/transactions/finish-occurrence.ts';
import { openInlineDb } from '../../packages/server/src/kernel/db/sqlite/inline.ts';
import { migrations, operations } from '../../packages/server/src/transactions/registry.ts';

// A process that claims and executes due work on a database that it shares with others, as a node does, without the node.
const [dataDir = '', owner = ''] = process.argv.slice(2);
const db = await openInlineDb({ dataDir, migrations, operations });
const leaseMs = 60_000;
const all = 10_000;

interface Executed {
  readonly jobId: string;
  readonly scheduledForMs: number;
}

async function tick(nowMs: number, executed: Executed[]): Promise<void> {
  const { onTime, late } = await db.read(dueJobs, { atMs: nowMs, lateAtMs: -1, limit: all, lateLimit: 0, except: [] });
  for (const row of [...onTime, ...late]) {
    const job = parseJob(row);
    if (job !== undefined)
      await db.write(claimOccurrence, planClaim(job, { bootId: owner, nowMs, bootedAtMs: 0, leastMs: 1_000, staggerWindowMs: 0 }));
  }
  for (;;) {
    // A few at a time, so that a stop finds some of them claimed and unfinished.
    const items = await db.write(claimWork, { owner, kinds: [{ kind: cronWork, free: 5 }], held: [], leaseUntilMs: nowMs + leaseMs, atMs: nowMs });
    if (items.length === 0) return;
    for (const item of items) {
      const work = CronWork().parse(item.payload);
      const plan = finishOf(
        work,
        { status: 'completed', text: 'done', ours: true },
        { defaultMaxErrors: 5, nowMs, fence: (text) => text, forOwner: true, address: (message) => message },
      );
      const claim = { id: item.id, owner: item.owner, fence: item.fence };
      if ((await db.write(finishOccurrence, { ...plan, claim })) !== undefined)
        executed.push({ jobId: work.jobId, scheduledForMs: work.scheduledForMs });
    }
  }
}

/** Tries again what met too many others, as the scheduler does. */
async function tickUntilDone(nowMs: number): Promise<Executed[]> {
  const executed: Executed[] = [];
  for (;;) {
    try {
      await tick(nowMs, executed);
      return executed;
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'unavailable')) throw error;
    }
  }
}

process.on('message', (nowMs: number) => {
  void tickUntilDone(nowMs).then(
    (executed) => process.send?.({ executed }),
    (error: unknown) => process.send?.({ executed: [], error: String(error) }),
  );
});
process.send?.({ ready: true });
