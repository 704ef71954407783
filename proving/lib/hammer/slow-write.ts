import { appendAudit, type AuditRow } from '../../../packages/server/src/kernel/db/audit.ts';
import { operation, query, raw } from '../../../packages/server/src/kernel/db/operation.ts';
import type { WorkClaim } from '../../../packages/server/src/features/unattended/durable/api.ts';
import { recordOwnTurn, type TurnRow } from '../../../packages/server/src/features/conversations/turns/store.ts';
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

/** The same for the end of a turn, whose owner has no fence but its boot. */
export const commitSlowly = operation(
  'hammer.commitSlowly',
  async (tx, { turn, row }: { readonly turn: TurnRow; readonly row: AuditRow }): Promise<boolean> => {
    if (!(await recordOwnTurn(tx, turn, [], null))) return false;
    await tx.get(pause, {});
    await appendAudit(tx, row);
    return true;
  },
  { isolation: 'read committed', orderKey: ({ turn }) => turn.id },
);

const stored = query<{ id: string }, { id: string }>(({ db, p }) => db.selectFrom('audit').select('id').where('id', '=', p('id')));

const ofTarget = query<{ target: string }, { count: number }>(({ db, sql, p }) =>
  db
    .selectFrom('audit')
    .select(sql<number>`count(*)`.as('count'))
    .where('target', '=', p('target')),
);

export const countStored = operation(
  'hammer.countStored',
  async (tx, input: { readonly target: string }) => (await tx.get(ofTarget, input))?.count ?? 0,
);

export const isStored = operation('hammer.isStored', async (tx, input: { readonly id: string }) => (await tx.get(stored, input)) !== undefined);
