import { createStepClock } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { claimOccurrence } from './claim-occurrence.ts';
import { fixed } from '../kernel/config/live.ts';
import type { Db } from '../kernel/db/db.ts';
import { raw } from '../kernel/db/operation.ts';
import { openInlineDb } from '../kernel/db/sqlite/inline.ts';
import { testEngine } from '../kernel/db/testing/engine.ts';
import { silentLog } from '../kernel/log.ts';
import { migrations, operations } from './registry.ts';
import { builtInJobs } from '../features/unattended/cron/jobs/built-in.ts';
import { planClaim } from '../features/unattended/cron/occurrences/claim.ts';
import { CronConfig } from '../features/unattended/cron/config.ts';
import { parseJob } from '../features/unattended/cron/jobs/job.ts';
import { Scheduler } from '../features/unattended/cron/occurrences/scheduler.ts';
import { addJob, dueJobs, type JobRow, reconcileBuiltIns } from '../features/unattended/cron/store.ts';

const startMs = Date.UTC(2026, 8, 21, 12);
const hourMs = 3_600_000;

async function addJobs(db: Db, count: number, nextRunAtMs: number): Promise<JobRow[]> {
  const jobs = Array.from({ length: count }, (_, index): JobRow => ({
    id: `cj_${index}`,
    agentId: `agent-${index % 10}`,
    name: `job ${index}`,
    source: 'authored',
    principalId: 'token:root',
    tokenId: 'root',
    scheduleJson: JSON.stringify({ kind: 'every', everyMs: 48 * hourMs, anchorMs: nextRunAtMs }),
    payloadJson: JSON.stringify({ kind: 'agent_turn', message: 'Go' }),
    policiesJson: '{}',
    state: 'scheduled',
    pauseReason: null,
    nextRunAtMs,
    dueAtMs: nextRunAtMs,
    highWaterMs: 0,
    errors: 0,
    activeExecutionId: null,
    claimedForMs: null,
    claimedAtMs: null,
    endedAtMs: null,
    revision: 1,
    createdAtMs: startMs,
    authorJson: null,
  }));
  await Promise.all(
    jobs.map((job) =>
      db.write(addJob, {
        job,
        seed: 'seed',
        ageNowMs: startMs,
        maxJobs: 10_000,
        audit: { id: `au_${job.id}`, atMs: startMs, principalId: '', action: 'cron.add', classification: 'mutate', outcome: 'success', traceId: '' },
      }),
    ),
  );
  return jobs;
}

test('E14: of eight claimants of each of 500 occurrences one wins', async () => {
  await using db = await openInlineDb({ migrations, operations });
  const jobs = await addJobs(db, 500, startMs);
  const wins = await Promise.all(
    Array.from({ length: 8 }, (_, claimer) =>
      Promise.all(
        jobs.map(async (row) => {
          const job = parseJob(row);
          if (job === undefined) throw new Error('a job of the test does not parse');
          return db.write(
            claimOccurrence,
            planClaim(job, { bootId: `claimer ${claimer}`, nowMs: startMs + claimer, bootedAtMs: 0, leastMs: 1_000, staggerWindowMs: 0 }),
          );
        }),
      ),
    ),
  );
  expect(jobs.map((_, index) => wins.filter((won) => won[index] === true).length)).toEqual(jobs.map(() => 1));
}, 30_000);

test('a virtual day with 2,000 jobs that are not due queries the database once', async () => {
  await using db = await openInlineDb({ migrations, operations });
  await addJobs(db, 2_000, startMs + 30 * hourMs);
  const clock = createStepClock(startMs);
  let reads = 0;
  const begun: string[] = [];
  const counting: Db = {
    ...db,
    read(operation, input) {
      reads += 1;
      return db.read(operation, input);
    },
  };
  await using scheduler = new Scheduler({
    setBack: async () => {},
    db: counting,
    clock,
    log: silentLog,
    config: fixed({ maxRunsPerTick: 3 }),
    held: () => [],
    begin: async (row) => void begun.push(row.id),
  });
  scheduler.start();
  await expect.poll(() => reads).toBe(1);
  // After everything that the scheduler requested.
  await db.read(dueJobs, { atMs: startMs, lateAtMs: startMs, limit: 1, lateLimit: 1, except: [] });
  clock.advance(24 * hourMs);
  await db.read(dueJobs, { atMs: startMs, lateAtMs: startMs, limit: 1, lateLimit: 1, except: [] });
  expect({ reads, begun }).toEqual({ reads: 1, begun: [] });
  clock.advance(6 * hourMs);
  await expect.poll(() => begun.length).toBeGreaterThanOrEqual(3);
}, 30_000);

test('1,500 jobs of one minute begin on time: those at the end of the queue are not mistaken for missed ones', async () => {
  await using db = await openInlineDb({ migrations, operations });
  await addJobs(db, 1_500, startMs + hourMs);
  const clock = createStepClock(startMs + hourMs);
  const lateBy: number[] = [];
  await using scheduler = new Scheduler({
    setBack: async () => {},
    db,
    clock,
    log: silentLog,
    config: fixed({ maxRunsPerTick: 3 }),
    held: () => [],
    async begin(row) {
      const job = parseJob(row);
      if (job === undefined) throw new Error('a job of the test does not parse');
      const plan = planClaim(job, { bootId: 'boot', nowMs: clock.now(), bootedAtMs: 0, leastMs: 1_000, staggerWindowMs: 0 });
      if (!(await db.write(claimOccurrence, plan))) return undefined;
      lateBy.push(clock.now() - (row.nextRunAtMs ?? 0));
      return plan.occurrence.executionId;
    },
  });
  scheduler.start();
  while (lateBy.length < 1_500 && clock.now() < startMs + hourMs + 90_000) {
    clock.advance(25);
    // The scheduler's requests are queued after this.
    for (let n = 0; n < 5; n += 1) await db.read(dueJobs, { atMs: 0, lateAtMs: 0, limit: 1, lateLimit: 1, except: [] });
  }
  expect([lateBy.length, Math.max(...lateBy) < 60_000]).toEqual([1_500, true]);
}, 60_000);

test('putting the built-in jobs of four times as many agents in order costs about four times as much', async () => {
  await using db = await openInlineDb({ migrations, operations });
  const reconcile = async (count: number) => {
    const agentIds = Array.from({ length: count }, (_, index) => `agent-${index}`);
    const wanted = agentIds.flatMap((agentId) => builtInJobs(agentId, CronConfig().parse({}), startMs));
    const before = process.cpuUsage();
    await db.write(reconcileBuiltIns, { wanted, agentIds, seed: 'cs_1', atMs: startMs });
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  await reconcile(2_000);
  const few = [await reconcile(500), await reconcile(500), await reconcile(500)];
  const many = [await reconcile(2_000), await reconcile(2_000)];
  expect(Math.min(...many) / Math.min(...few)).toBeLessThan(7);
}, 60_000);

test.skipIf(testEngine === 'postgres')(
  'an index holds waiting jobs: a check of the clock reads no job that is not due (the plan of SQLite)',
  async () => {
    await using db = await openInlineDb({ migrations, operations: [...operations, plan] });
    await addJobs(db, 10, startMs);
    expect(await db.read(plan, {})).toEqual([expect.stringContaining('USING INDEX cron_job_due (due_at_ms>? AND due_at_ms<?)')]);
  },
);

const plan = {
  name: 'test.plan',
  run: async (tx: Parameters<(typeof dueJobs)['run']>[0]) =>
    (
      await tx.build<{ detail: string }>((db, sql) =>
        raw(
          db,
          sql<{
            detail: string;
          }>`EXPLAIN QUERY PLAN SELECT id FROM cron_job WHERE state = 'scheduled' AND active_execution_id IS NULL AND due_at_ms IS NOT NULL AND due_at_ms > 1 AND due_at_ms <= 2 ORDER BY due_at_ms, id LIMIT 3`,
        ),
      )
    )
      .map(({ detail }) => detail)
      .filter((detail) => detail.startsWith('SEARCH')),
};
