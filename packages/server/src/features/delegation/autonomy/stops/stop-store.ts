import { AppError } from '../../../../kernel/app-error.ts';
import { appendAudit, type AuditRow } from '../../../../kernel/db/audit.ts';
import { operation, query, type Tx } from '../../../../kernel/db/operation.ts';
import type { RootEntry } from '../api.ts';
import { openRoot, rootState } from '../store.ts';

const revokeRootRow = query<{ id: string; atMs: number }>(({ db, p }) =>
  db
    .updateTable('rootRun')
    .set({ state: 'revoked', endedAtMs: p('atMs'), heartbeatAtMs: p('atMs') })
    .where('id', '=', p('id')),
);

interface LeaseName {
  readonly id: string;
  readonly rootRunId: string;
}

const leasesOfRoot = query<{ rootRunId: string; atMs: number }, LeaseName>(({ db, sql, p }) =>
  db
    .updateTable('lease')
    .set({ revoked: 1, endedAtMs: p('atMs') })
    .where('rootRunId', '=', p('rootRunId'))
    .where(sql<boolean>`revoked = 0`)
    .where('endedAtMs', 'is', null)
    .returning(['id', 'rootRunId']),
);

const ownerOfLease = query<{ id: string }, Owned>(({ db, p }) => db.selectFrom('lease').select(['agentId', 'principalId']).where('id', '=', p('id')));

const oneLease = query<{ id: string; atMs: number }, LeaseName>(({ db, sql, p }) =>
  db
    .updateTable('lease')
    .set({ revoked: 1, endedAtMs: p('atMs') })
    .where('id', '=', p('id'))
    .where(sql<boolean>`revoked = 0`)
    .where('endedAtMs', 'is', null)
    .returning(['id', 'rootRunId']),
);

const below = query<{ parentLeaseId: string }, { id: string }>(({ db, p }) =>
  db.selectFrom('lease').select('id').where('parentLeaseId', '=', p('parentLeaseId')),
);

interface Owned {
  readonly agentId: string;
  readonly principalId: string;
}

/** The runs that a caller may see. */
interface Reach {
  /** Agents that the token is bound to; runs of others are hidden from it. Null: all. */
  readonly agentIds: readonly string[] | null;
  /** The principal that an agent with `adminTrust` works for. Null: any. */
  readonly principalId: string | null;
}

interface Stopping extends Reach {
  readonly rootRunId: string;
  /** The running turn of the root, if any; it may have started nothing yet. */
  readonly turn: Omit<RootEntry, 'kind' | 'rootRunId' | 'atMs'> | undefined;
  readonly audit: AuditRow;
  readonly atMs: number;
}

type Revoking = Omit<Stopping, 'rootRunId'> & {
  readonly leaseId: string | undefined;
  readonly rootRunId: string | undefined;
};

export interface Revoked {
  /** Leases that were valid until now. */
  readonly leases: readonly LeaseName[];
  /** Whether this revoked the root. */
  readonly root: boolean;
}

const isWithin = ({ agentIds, principalId }: Reach, owned: Owned | undefined): boolean =>
  (agentIds === null || agentIds.includes(owned?.agentId ?? '')) && (principalId === null || principalId === owned?.principalId);

/** Finds a root that the token may see, or the turn of one without a row. */
async function findRoot(tx: Tx, { rootRunId, turn, ...reach }: Pick<Stopping, 'rootRunId' | 'turn' | keyof Reach>) {
  const found = await tx.get(rootState, { id: rootRunId });
  const isThere = isWithin(reach, found ?? turn);
  return isThere ? { found, turn } : { found: undefined, turn: undefined };
}

/** Revokes a root that exists or whose turn runs; false when nothing of it is active any more. */
async function revokeRoot(tx: Tx, { atMs, ...asked }: Omit<Stopping, 'audit'>): Promise<boolean> {
  const { rootRunId: id } = asked;
  const { found, turn } = await findRoot(tx, asked);
  if (found === undefined) {
    if (turn === undefined) return false;
    // The turn behind it may be a command or a background call, which has another id.
    await openRoot(tx, { ...turn, id, atMs, endedAtMs: atMs, state: 'revoked', runs: 0, graphs: 0, scripts: 0 });
    return true;
  }
  // Revoked work may still be running, and an ended root may have a running turn.
  if (found.state !== 'active' && found.open <= 0 && turn === undefined) return false;
  await tx.run(revokeRootRow, { id, atMs });
  return true;
}

/** Revokes a lease and all below it: a child never has more than its parent. */
async function revokeTree(tx: Tx, leaseId: string, atMs: number): Promise<LeaseName[]> {
  const revoked: LeaseName[] = [];
  const left = [leaseId];
  for (let id = left.pop(); id !== undefined; id = left.pop()) {
    revoked.push(...(await tx.all(oneLease, { id, atMs })));
    left.push(...(await tx.all(below, { parentLeaseId: id })).map((row) => row.id));
  }
  return revoked;
}

/** Revokes leases; an active root becomes `revoked`. */
export const revoke = operation('autonomy.revoke', async (tx, { leaseId, rootRunId, audit, atMs, ...reach }: Revoking): Promise<Revoked> => {
  const holder = leaseId === undefined ? undefined : await tx.get(ownerOfLease, { id: leaseId });
  const leases = leaseId === undefined || !isWithin(reach, holder) ? [] : await revokeTree(tx, leaseId, atMs);
  const isThere = rootRunId !== undefined && (await findRoot(tx, { rootRunId, ...reach })).found !== undefined;
  if (isThere) leases.push(...(await tx.all(leasesOfRoot, { rootRunId, atMs })));
  const root = rootRunId !== undefined && (await revokeRoot(tx, { rootRunId, atMs, ...reach }));
  await appendAudit(tx, audit);
  return { leases, root };
});

/** Revokes a root with all its leases before anything is aborted. Throws `not_found` for an unknown root, `precondition_failed` for an ended one. */
export const kill = operation('autonomy.kill', async (tx, { rootRunId, audit, atMs, ...reach }: Stopping): Promise<Revoked> => {
  const { found } = await findRoot(tx, { rootRunId, ...reach });
  if (!(await revokeRoot(tx, { rootRunId, atMs, ...reach })))
    throw found === undefined
      ? new AppError('not_found', `Run not found: ${rootRunId}`, { param: 'rootRunId' })
      : new AppError('precondition_failed', `The run is already ${found.state}`, { param: 'rootRunId' });
  const leases = await tx.all(leasesOfRoot, { rootRunId, atMs });
  await appendAudit(tx, audit);
  return { leases, root: true };
});

const evictRow = query<{ id: string }>(({ db, p }) => db.updateTable('rootRun').set({ evicted: 1 }).where('id', '=', p('id')));

/** Lowers the profile of a root. */
export const evict = operation('autonomy.evict', async (tx, { audit, atMs, ...asked }: Stopping): Promise<void> => {
  const { rootRunId: id } = asked;
  const { found, turn } = await findRoot(tx, asked);
  if (found === undefined) {
    if (turn === undefined) throw new AppError('not_found', `Run not found: ${id}`, { param: 'rootRunId' });
    await openRoot(tx, { ...turn, id, atMs, endedAtMs: atMs, state: 'completed', runs: 0, graphs: 0, scripts: 0 });
  }
  await tx.run(evictRow, { id });
  await appendAudit(tx, audit);
});

export const stopOperations = [revoke, kill, evict];
