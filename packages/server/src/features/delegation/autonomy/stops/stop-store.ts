import { AppError } from '../../../../kernel/app-error.ts';
import { appendAudit, type AuditRow } from '../../../../kernel/db/audit.ts';
import { operation, query, type Tx } from '../../../../kernel/db/operation.ts';
import type { RootEntry } from '../api.ts';
import { openRoot, rootState } from '../store.ts';

const revokeRootRow = query<{ id: string; atMs: number }>(({ db, p }) =>
  db
    .updateTable('root_run')
    .set({ state: 'revoked', ended_at_ms: p('atMs'), heartbeat_at_ms: p('atMs') })
    .where('id', '=', p('id')),
);

interface LeaseName {
  readonly id: string;
  readonly rootRunId: string;
}

const leasesOfRoot = query<{ rootRunId: string; atMs: number }, LeaseName>(({ db, sql, p }) =>
  db
    .updateTable('lease')
    .set({ revoked: 1, ended_at_ms: p('atMs') })
    .where('root_run_id', '=', p('rootRunId'))
    .where(sql<boolean>`revoked = 0`)
    .where('ended_at_ms', 'is', null)
    .returning(['id', 'root_run_id as rootRunId']),
);

const ownerOfLease = query<{ id: string }, Owned>(({ db, p }) =>
  db.selectFrom('lease').select(['agent_id as agentId', 'principal_id as principalId']).where('id', '=', p('id')),
);

const oneLease = query<{ id: string; atMs: number }, LeaseName>(({ db, sql, p }) =>
  db
    .updateTable('lease')
    .set({ revoked: 1, ended_at_ms: p('atMs') })
    .where('id', '=', p('id'))
    .where(sql<boolean>`revoked = 0`)
    .where('ended_at_ms', 'is', null)
    .returning(['id', 'root_run_id as rootRunId']),
);

const below = query<{ parentLeaseId: string }, { id: string }>(({ db, p }) =>
  db.selectFrom('lease').select('id').where('parent_lease_id', '=', p('parentLeaseId')),
);

interface Owned {
  readonly agentId: string;
  readonly principalId: string;
}

/** What of the runs is there for a caller. */
interface Reach {
  /** Agents that the token is bound to: to it what is of others is not there. Null: all. */
  readonly agentIds: readonly string[] | null;
  /** Of the principal that an agent with `adminTrust` works for. Null: of everybody. */
  readonly principalId: string | null;
}

interface Stopping extends Reach {
  readonly rootRunId: string;
  /** The turn of the root, when it runs: it may have set nothing going yet. */
  readonly turn: Omit<RootEntry, 'piece' | 'rootRunId' | 'atMs'> | undefined;
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
  /** Whether the root is revoked by this. */
  readonly root: boolean;
}

const isWithin = ({ agentIds, principalId }: Reach, owned: Owned | undefined): boolean =>
  (agentIds === null || agentIds.includes(owned?.agentId ?? '')) && (principalId === null || principalId === owned?.principalId);

/** A root that the token may know of, and the turn of one that was not written yet. */
async function findRoot(tx: Tx, { rootRunId, turn, ...reach }: Pick<Stopping, 'rootRunId' | 'turn' | keyof Reach>) {
  const found = await tx.get(rootState, { id: rootRunId });
  const isThere = isWithin(reach, found ?? turn);
  return isThere ? { found, turn } : { found: undefined, turn: undefined };
}

/** Makes a root that is there, or whose turn runs, a revoked one; false when nothing of it goes on any more. */
async function revokeRoot(tx: Tx, { atMs, ...asked }: Omit<Stopping, 'audit'>): Promise<boolean> {
  const { rootRunId: id } = asked;
  const { found, turn } = await findRoot(tx, asked);
  if (found === undefined) {
    if (turn === undefined) return false;
    await openRoot(tx, { id, ...turn, atMs, endedAtMs: atMs, state: 'revoked', runs: 0, graphs: 0, scripts: 0 });
    return true;
  }
  // What was revoked may still run, and what ended may have a turn that still does.
  if (found.state !== 'active' && found.open <= 0 && turn === undefined) return false;
  await tx.run(revokeRootRow, { id, atMs });
  return true;
}

/** A lease with all below it: a child never has more than its parent. */
async function revokeTree(tx: Tx, leaseId: string, atMs: number): Promise<LeaseName[]> {
  const revoked: LeaseName[] = [];
  const left = [leaseId];
  for (let id = left.pop(); id !== undefined; id = left.pop()) {
    revoked.push(...(await tx.all(oneLease, { id, atMs })));
    left.push(...(await tx.all(below, { parentLeaseId: id })).map((row) => row.id));
  }
  return revoked;
}

/** Takes leases back; a root that goes on becomes `revoked`. */
export const revoke = operation('autonomy.revoke', async (tx, { leaseId, rootRunId, audit, atMs, ...reach }: Revoking): Promise<Revoked> => {
  const holder = leaseId === undefined ? undefined : await tx.get(ownerOfLease, { id: leaseId });
  const leases = leaseId === undefined || !isWithin(reach, holder) ? [] : await revokeTree(tx, leaseId, atMs);
  const isThere = rootRunId !== undefined && (await findRoot(tx, { rootRunId, ...reach })).found !== undefined;
  if (isThere) leases.push(...(await tx.all(leasesOfRoot, { rootRunId, atMs })));
  const root = rootRunId !== undefined && (await revokeRoot(tx, { rootRunId, atMs, ...reach }));
  await appendAudit(tx, audit);
  return { leases, root };
});

/** Revokes a root with all its leases, before anything of it is aborted. `not_found` for one that is not there, `precondition_failed` for one that ended. */
export const kill = operation('autonomy.kill', async (tx, { rootRunId, audit, atMs, ...reach }: Stopping): Promise<Revoked> => {
  const { found } = await findRoot(tx, { rootRunId, ...reach });
  if (!(await revokeRoot(tx, { rootRunId, atMs, ...reach })))
    throw found === undefined
      ? new AppError('not_found', `Run not found: ${rootRunId}`, { param: 'rootRunId' })
      : new AppError('precondition_failed', `The run is ${found.state} already`, { param: 'rootRunId' });
  const leases = await tx.all(leasesOfRoot, { rootRunId, atMs });
  await appendAudit(tx, audit);
  return { leases, root: true };
});

const evictRow = query<{ id: string }>(({ db, p }) => db.updateTable('root_run').set({ evicted: 1 }).where('id', '=', p('id')));

/** Lets the profile of a root fall back. */
export const evict = operation('autonomy.evict', async (tx, { audit, atMs, ...asked }: Stopping): Promise<void> => {
  const { rootRunId: id } = asked;
  const { found, turn } = await findRoot(tx, asked);
  if (found === undefined) {
    if (turn === undefined) throw new AppError('not_found', `Run not found: ${id}`, { param: 'rootRunId' });
    await openRoot(tx, { id, ...turn, atMs, endedAtMs: atMs, state: 'completed', runs: 0, graphs: 0, scripts: 0 });
  }
  await tx.run(evictRow, { id });
  await appendAudit(tx, audit);
});

export const stopOperations = [revoke, kill, evict];
