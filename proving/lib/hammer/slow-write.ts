import { appendAudit, type AuditRow } from '../../../packages/server/src/kernel/db/audit.ts';
import { operation, query, raw } from '../../../packages/server/src/kernel/db/operation.ts';
import type { WorkClaim } from '../../../packages/server/src/features/unattended/durable/api.ts';
import { holdsWork } from '../../../packages/server/src/features/unattended/durable/store.ts';

const pause = query<object, { paused: number }>(({ db, sql, dialect }) =>
  raw(db, dialect === 'postgres' ? sql<{ paused: number }>`select 1 as paused from pg_sleep(0.03)` : sql<{ paused: number }>`select 1 as paused`),
);

/** A write of an owner whose transaction stays open for a while after its check of the claim. */
export const storeSlowly = operation(
  'hammer.storeSlowly',
  async (tx, { claim, row }: { readonly claim: WorkClaim; readonly row: AuditRow }): Promise<boolean> => {
    if (!(await holdsWork(tx, claim))) return false;
    await tx.get(pause, {});
    await appendAudit(tx, row);
    return true;
  },
  { orderKey: ({ claim }) => claim.id },
);

const stored = query<{ id: string }, { id: string }>(({ db, p }) => db.selectFrom('audit').select('id').where('id', '=', p('id')));

export const isStored = operation('hammer.isStored', async (tx, input: { readonly id: string }) => (await tx.get(stored, input)) !== undefined);
