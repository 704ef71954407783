import { expect, test } from 'vitest';
import { planBackfill, planClaim } from '../features/unattended/cron/occurrences/claim.ts';
import { nextBackfills, requestBackfill } from '../features/unattended/cron/occurrences/backfill-store.ts';
import { type Job, parseJob } from '../features/unattended/cron/jobs/job.ts';
import { advanceReset, prepareReset, readStatus } from '../features/unattended/cron/jobs/reset-store.ts';
import { addJob, type JobRow, removeJob } from '../features/unattended/cron/store.ts';
import type { Db } from '../kernel/db/db.ts';
import { openInlineDb } from '../kernel/db/sqlite/inline.ts';
import { claimBackfill, claimOccurrence } from './claim-occurrence.ts';
import { migrations, operations } from './registry.ts';

const atMs = Date.UTC(2026, 8, 21, 12);
const hourMs = 3_600_000;
const agentId = 'default';
const audit = (id: string) => ({ id, atMs, principalId: '', action: 'cron', classification: 'mutate', outcome: 'success', traceId: '' }) as const;
const by = (bootId: string) => ({ bootId, nowMs: atMs, bootedAtMs: 0, leastMs: 1_000, staggerWindowMs: 0 });

const row: JobRow = {
  id: 'cj_bell',
  agentId,
  name: 'bell',
  source: 'authored',
  principalId: 'token:root',
  tokenId: 'root',
  scheduleJson: JSON.stringify({ kind: 'every', everyMs: hourMs, anchorMs: atMs - 10 * hourMs }),
  payloadJson: JSON.stringify({ kind: 'delivery', text: 'Ding.' }),
  policiesJson: '{}',
  state: 'scheduled',
  pauseReason: null,
  nextRunAtMs: atMs,
  dueAtMs: atMs,
  highWaterMs: 0,
  errors: 0,
  activeExecutionId: null,
  claimedForMs: null,
  claimedAtMs: null,
  endedAtMs: null,
  revision: 1,
  createdAtMs: atMs,
  authorJson: null,
};
const job: Job = parseJob(row) ?? expect.fail('the job is damaged');

async function openWith(...timesMs: number[]): Promise<Db & AsyncDisposable> {
  const db = await openInlineDb({ migrations, operations });
  await db.write(addJob, { job: row, seed: 'seed', ageNowMs: atMs, maxJobs: 10, audit: audit('au_add') });
  await db.write(requestBackfill, { jobId: row.id, agentId, timesMs, maxQueued: 100, atMs, audit: audit('au_backfill') });
  return db;
}

const next = (db: Db) => db.read(nextBackfills, { except: [], atOnce: 4 });

test('of two daemons that claim a queued time one gets it, and the next time waits for its end', async () => {
  await using db = await openWith(atMs - 2 * hourMs, atMs - hourMs);
  const claims = await Promise.all(['a', 'b'].map((boot) => db.write(claimBackfill, planBackfill(job, atMs - 2 * hourMs, by(boot)))));
  expect(claims).toEqual([true, false]);
  expect(await db.write(claimBackfill, planBackfill(job, atMs - hourMs, by('b')))).toBe(false);
  expect(await next(db)).toEqual({ next: [], isOpen: true });
});

test('a time that the scheduler has claimed meanwhile is dropped, and one that was run on request is not claimed by the scheduler', async () => {
  await using db = await openWith(atMs);
  expect(await db.write(claimOccurrence, planClaim(job, by('a')))).toBe(true);
  expect(await db.write(claimBackfill, planBackfill(job, atMs, by('b')))).toBe(false);
  expect(await next(db)).toEqual({ next: [], isOpen: false });

  await using other = await openWith(atMs);
  expect(await other.write(claimBackfill, planBackfill(job, atMs, by('b')))).toBe(true);
  expect(await other.write(claimOccurrence, planClaim(job, by('a')))).toBe(false);
});

test('queued times go with their job, and with a reset', async () => {
  await using db = await openWith(atMs - hourMs);
  await db.write(removeJob, { id: row.id, agentId, name: row.name, audit: audit('au_remove') });
  expect(await next(db)).toEqual({ next: [], isOpen: false });
  expect(await db.write(claimBackfill, planBackfill(job, atMs - hourMs, by('a')))).toBe(false);

  await using other = await openWith(atMs - hourMs);
  const { ledger } = await other.read(readStatus, { agentId, principalId: null, bootId: 'boot' });
  const reset = { agentId, operationId: 'co_1', target: 'ledger', expected: { ledger: ledger.digest }, bootId: 'boot', atMs } as const;
  await other.write(prepareReset, { ...reset, audit: audit('au_reset') });
  expect(await other.write(claimBackfill, planBackfill(job, atMs - hourMs, by('a')))).toBe(false);
  const late = { jobId: row.id, agentId, timesMs: [atMs - 2 * hourMs], maxQueued: 100, atMs, audit: audit('au_late') };
  await expect(other.write(requestBackfill, late)).rejects.toMatchObject({ code: 'precondition_failed' });
  for (let left = 6; left > 0 && (await other.write(advanceReset, { agentId, atMs })) !== null; left -= 1);
  expect(await next(other)).toEqual({ next: [], isOpen: false });
});
