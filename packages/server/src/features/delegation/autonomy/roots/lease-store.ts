import { operation, query, type Tx } from '../../../../kernel/db/operation.ts';
import type { HeldLease } from '../api.ts';

/** The stored form: `caps` joined by commas. */
export interface LeaseRow extends Omit<HeldLease, 'caps'> {
  readonly caps: string;
}

const columns = [
  'lease.id as id',
  'lease.rootRunId',
  'lease.parentLeaseId',
  'lease.runId',
  'lease.agentId',
  'lease.principalId',
  'lease.caps as caps',
  'lease.expiresAtMs',
] as const;

const extend = query<{ id: string; expiresAtMs: number }>(({ db, sql, p }) =>
  db
    .updateTable('lease')
    .set({ expiresAtMs: p('expiresAtMs') })
    .where('id', '=', p('id'))
    .where('endedAtMs', 'is', null)
    .where(sql<boolean>`revoked = 0`),
);

const held = query<{ id: string }, LeaseRow>(({ db, sql, p }) =>
  db
    .selectFrom('lease')
    .select(columns)
    .where('id', '=', p('id'))
    .where('endedAtMs', 'is', null)
    .where(sql<boolean>`revoked = 0`),
);

/** Extends the lease of a run when its turn begins, unless it ended or was revoked. The claim of the run's work shows that the run is alive. */
export const beginLease = operation(
  'autonomy.beginLease',
  async (tx, input: { readonly id: string; readonly expiresAtMs: number }): Promise<LeaseRow | undefined> => {
    const { changes } = await tx.run(extend, input);
    if (changes === 0) return undefined;
    return tx.get(held, { id: input.id });
  },
);

/** Reads the lease of a run, unless it ended or was revoked. */
export const findLease = operation('autonomy.findLease', (tx, input: { readonly id: string }) => tx.get(held, input));

/** Extends leases of runs whose turns are still running. */
export const renewLeases = operation(
  'autonomy.renewLeases',
  async (tx, { ids, expiresAtMs }: { readonly ids: readonly string[]; readonly expiresAtMs: number }): Promise<void> => {
    for (const id of ids) await tx.run(extend, { id, expiresAtMs });
  },
);

const byBearer = query<{ bearerDigest: string; atMs: number }, LeaseRow>(({ db, sql, p }) =>
  db
    .selectFrom('lease')
    .innerJoin('rootRun', 'rootRun.id', 'lease.rootRunId')
    .select(columns)
    .where('lease.bearerDigest', '=', p('bearerDigest'))
    .where('lease.endedAtMs', 'is', null)
    .where('lease.expiresAtMs', '>', p('atMs'))
    .where(sql<boolean>`lease.revoked = 0`)
    .where(sql<boolean>`root_run.state = 'active'`),
);

/** Reads the valid lease of a bearer. */
export const findBearer = operation(
  'autonomy.findBearer',
  async (tx: Tx, input: { readonly bearerDigest: string; readonly atMs: number }): Promise<LeaseRow | undefined> => tx.get(byBearer, input),
);

export const leaseOperations = [beginLease, findLease, renewLeases, findBearer];
