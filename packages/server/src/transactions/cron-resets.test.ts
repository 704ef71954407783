import { expect, test } from 'vitest';
import { claimManually, claimOccurrence } from './claim-occurrence.ts';
import { planClaim, planManual } from '../features/unattended/cron/occurrences/claim.ts';
import { type Job, parseJob } from '../features/unattended/cron/jobs/job.ts';
import { advanceReset, prepareReset, readStatus } from '../features/unattended/cron/jobs/reset-store.ts';
import { findJobs, listJobs } from '../features/unattended/cron/jobs/search-store.ts';
import { addJob, changeJob, type JobRow, removeAgentJobs, removeJob } from '../features/unattended/cron/store.ts';
import type { Db } from '../kernel/db/db.ts';
import { openInlineDb } from '../kernel/db/sqlite/inline.ts';
import { migrations, operations } from './registry.ts';

const atMs = Date.UTC(2026, 8, 21, 12);
const agentId = 'default';
const audit = { id: 'au_1', atMs, principalId: '', action: 'cron', classification: 'mutate', outcome: 'success', traceId: '' } as const;
const claiming = { bootId: 'boot', nowMs: atMs, bootedAtMs: 0, leastMs: 1_000, staggerWindowMs: 0 };

const rowOf = (name: string): JobRow => ({
  id: `cj_${name}`,
  agentId,
  name,
  source: 'authored',
  principalId: 'token:root',
  tokenId: 'root',
  scheduleJson: JSON.stringify({ kind: 'every', everyMs: 3_600_000, anchorMs: atMs }),
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
});

const add = (db: Db, name: string) =>
  db.write(addJob, { job: rowOf(name), seed: 'seed', ageNowMs: atMs, maxJobs: 10, audit: { ...audit, id: `au_${name}` } });

async function jobOf(db: Db): Promise<Job> {
  const [row] = await db.read(findJobs, { name: 'bell', principalId: null, agentIds: null });
  return (row === undefined ? undefined : parseJob(row)) ?? expect.fail('there is no job');
}

async function prepare(db: Db, target: 'ledger' | 'all'): Promise<void> {
  const { store, ledger } = await db.read(readStatus, { agentId, principalId: null, bootId: 'boot' });
  const expected = target === 'all' ? { store: store.digest, ledger: ledger.digest } : { ledger: ledger.digest };
  await db.write(prepareReset, { agentId, operationId: 'co_1', target, expected, bootId: 'boot', atMs, audit: { ...audit, id: 'au_reset' } });
}

test('while a reset runs nothing of the agent is acknowledged that it would lose', async () => {
  await using db = await openInlineDb({ migrations, operations });
  await add(db, 'bell');
  const job = await jobOf(db);
  await prepare(db, 'ledger');
  const refused = { code: 'precondition_failed' };
  // A tick that read its jobs before the reset started.
  expect(await db.write(claimOccurrence, planClaim(job, claiming))).toBe(false);
  await expect(db.write(claimManually, planManual(job, claiming))).rejects.toMatchObject(refused);
  await expect(add(db, 'second')).rejects.toMatchObject(refused);
  const { id, revision, name, scheduleJson, payloadJson, policiesJson, nextRunAtMs, dueAtMs } = job.row;
  const change = { id, revision, name, scheduleJson, payloadJson, policiesJson, nextRunAtMs, dueAtMs };
  await expect(
    db.write(changeJob, {
      change: { ...change, state: 'paused', pauseReason: 'operator', errors: 0, authorJson: null },
      row: job.row,
      audit: { ...audit, id: 'au_c' },
    }),
  ).rejects.toMatchObject(refused);
  await expect(db.write(removeJob, { id, agentId, name, audit: { ...audit, id: 'au_r' } })).rejects.toMatchObject(refused);
  while ((await db.write(advanceReset, { agentId, atMs })) !== null);
  // It was not emptied and is not held by a missing occurrence.
  expect((await jobOf(db)).row).toEqual(job.row);
  expect(await db.write(claimOccurrence, planClaim(job, claiming))).toBe(true);
});

test('a reset does not start while jobs run: one would wait forever for an end without a record', async () => {
  await using db = await openInlineDb({ migrations, operations });
  await add(db, 'bell');
  expect(await db.write(claimOccurrence, planClaim(await jobOf(db), claiming))).toBe(true);
  for (const target of ['ledger', 'all'] as const) await expect(prepare(db, target)).rejects.toMatchObject({ code: 'precondition_failed' });
});

test('finished one-shot jobs do not pile up for a week: the newest of each agent are kept', async () => {
  await using db = await openInlineDb({ migrations, operations });
  await add(db, 'open');
  for (let n = 0; n < 230; n += 1) {
    const ended = { ...rowOf(`once ${n}`), state: 'one_shot_terminal' as const, nextRunAtMs: null, dueAtMs: null, endedAtMs: atMs + n };
    await db.write(addJob, { job: ended, seed: 'seed', ageNowMs: atMs, maxJobs: 10, audit: { ...audit, id: `au_once_${n}` } });
  }
  await add(db, 'last');
  const { rows } = await db.read(listJobs, { principalId: null, agentIds: null, offset: 0, limit: 1000 });
  const names = rows.map(({ name }) => name);
  expect(names.length).toBe(202);
  expect(names).toEqual(expect.arrayContaining(['open', 'last', 'once 229', 'once 30']));
});

test('deleting an agent removes its whole schedule, including what resets have archived', async () => {
  await using db = await openInlineDb({ migrations, operations: [...operations, archived] });
  await add(db, 'bell');
  await prepare(db, 'all');
  while ((await db.write(advanceReset, { agentId, atMs })) !== null);
  expect(await db.read(archived, {})).toHaveLength(2);
  await db.write(removeAgentJobs, { agentId });
  expect(await db.read(archived, {})).toEqual([]);
});

const archived = {
  name: 'test.archived',
  run: async (tx: Parameters<(typeof readStatus)['run']>[0]) => tx.build<object>((db) => db.selectFrom('cronArchive').select('part')),
};
