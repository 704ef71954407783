import { planClaim } from '../../packages/server/src/features/unattended/cron/occurrences/claim.ts';
import { finishOf } from '../../packages/server/src/features/unattended/cron/occurrences/finish.ts';
import { CronWork } from '../../packages/server/src/features/unattended/cron/occurrences/work.ts';
import { parseJob } from '../../packages/server/src/features/unattended/cron/jobs/job.ts';
import { addJob } from '../../packages/server/src/features/unattended/cron/store.ts';
import { reserveForTurn } from '../../packages/server/src/features/conversations/turns/store.ts';
import type { WorkItem } from '../../packages/server/src/features/unattended/durable/api.ts';
import type { Db } from '../../packages/server/src/kernel/db/db.ts';
import { acceptDelivery } from '../../packages/server/src/transactions/accept-delivery.ts';
import { claimOccurrence } from '../../packages/server/src/transactions/claim-occurrence.ts';
import { commitDurableTurn } from '../../packages/server/src/transactions/commit-durable-turn.ts';
import { commitTurn, openTurn } from '../../packages/server/src/transactions/commit-turn.ts';
import { finishOccurrence } from '../../packages/server/src/transactions/finish-occurrence.ts';
import { namesOf } from './hammer/driver.ts';
import { deliveryOf, jobOf } from './hammer/rows.ts';
import { claimOf, commitOf, makePiece, type Piece, piece, staleKinds, turnOf, type Write } from './stale-work.ts';

/** Kinds of work of a daemon whose lease has ended. `turn` belongs to its boot, the other ones to a claim. */
export const nodeKinds = [...staleKinds, 'webhook', 'cron', 'turn'] as const;
export type NodeKind = (typeof nodeKinds)[number];
/** Kinds with a work item, which is claimed. */
export const claimedKinds = nodeKinds.filter((kind) => kind !== 'turn');

const atMs = Date.UTC(2026, 8, 21, 12);
const names = namesOf('node');

/** Accepts work for a boot, as a daemon does when it acknowledges it. */
export async function makeNodePiece(db: Db, kind: NodeKind, n: number, bootId: string): Promise<Piece> {
  switch (kind) {
    case 'webhook':
      await db.write(acceptDelivery, deliveryOf(names, n));
      return piece(kind, n, [], [['commit', (on, claim) => on.write(commitDurableTurn, commitOf(n, claim, []))]]);
    case 'cron': {
      const row = jobOf(names, n);
      await db.write(addJob, { job: row, seed: 'seed', ageNowMs: atMs, maxJobs: 1_000_000, audit: names.audit(`job-${n}`) });
      const job = parseJob(row);
      if (job === undefined) throw new Error('the job cannot be parsed');
      await db.write(claimOccurrence, planClaim(job, { bootId, nowMs: atMs, bootedAtMs: 0, leastMs: 1_000, staggerWindowMs: 0 }));
      return piece(kind, n, [], [['finish', finishing]]);
    }
    case 'turn': {
      const turn = { ...turnOf(n, 'completed'), bootId };
      const opened = { ...turn, state: 'running' as const, endedAtMs: null };
      await db.write(openTurn, { turn: opened });
      const writes: Write[] = [
        ['reserve', (on) => on.write(reserveForTurn, { id: turn.id, reservedNano: 5, model: 'stale' })],
        ['commit', (on) => on.write(commitTurn, { turn, calls: [], conversation: null })],
        ['open', (on) => on.write(openTurn, { turn: { ...opened, id: `${turn.id}-later` } })],
      ];
      return { kind, writes, ends: [] };
    }
    default:
      return makePiece(db, kind, n);
  }
}

/** Ends an occurrence, as its owner does after the turn. */
const finishing: Write[1] = async (db, claim) => {
  const work = CronWork().parse((claim as WorkItem).payload);
  const result = { status: 'completed' as const, text: 'done', ours: true, dependency: 'dependency_error' as const };
  const plan = finishOf(work, result, { defaultMaxErrors: 5, nowMs: atMs, fence: (text) => text, forOwner: true, address: (message) => message });
  const { id, owner, fence } = claim;
  return db.write(finishOccurrence, { ...plan, claim: { id, owner, fence } });
};

/** Kinds that a request leads to; the others follow from them. */
export const acceptedKinds: readonly NodeKind[] = ['subagent', 'graph', 'session_send', 'webhook', 'cron'];

/** Accepts another work item of that kind. This needs no claim: only the lease of the daemon refuses it. */
export const accepting = (kind: NodeKind, n: number, bootId: string): Write => ['accept', (db) => makeNodePiece(db, kind, 1_000_000 + n, bootId)];

/** Claims the work of a piece; a turn belongs to the boot that opened it. */
export async function claimPiece(db: Db, kind: NodeKind, owner: string, nowMs: number): Promise<WorkItem | undefined> {
  return kind === 'turn' ? undefined : claimOf(db, kind, owner, nowMs);
}
