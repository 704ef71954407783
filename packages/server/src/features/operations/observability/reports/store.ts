import { activityOperations } from './activity/activity-store.ts';
import { contextReportOperations } from './contexts/context-store.ts';
import { deliveryOperations } from './deliveries/delivery-store.ts';
import { operation, query } from '../../../../kernel/db/operation.ts';
import type { ResetTarget } from '@gatehouse/contract';
import { appendAudit, type AuditRow } from '../../../../kernel/db/audit.ts';

const refsOfKey = query<{ sessionKey: string }, { conversationRef: string }>(({ db, p }) =>
  db
    .selectFrom('turn')
    .select('conversationRef')
    .where('sessionKey', '=', p('sessionKey'))
    .union(db.selectFrom('conversation').select('ref as conversationRef').where('sessionKey', '=', p('sessionKey'))),
);

/** Returns the conversations that have, or had, a session key. Reads all turns: turns outlive their conversation, and have no index of keys. */
export const conversationsOfKey = operation('obs.conversationsOfKey', async (tx, input: { readonly sessionKey: string }): Promise<string[]> =>
  (await tx.all(refsOfKey, input)).map(({ conversationRef }) => conversationRef),
);

export interface ResetMark {
  readonly name: ResetTarget;
  readonly atMs: number;
  readonly upTo: number;
}

const resets = query<object, ResetMark>(({ db }) => db.selectFrom('obsReset').select(['name', 'atMs', 'upTo']));

/** Returns the last reset of each kind of observability data. */
export const readResets = operation('obs.resets', async (tx): Promise<ResetMark[]> => tx.all(resets, {}));

const mark = query<ResetMark>(({ db, p, each }) =>
  db
    .insertInto('obsReset')
    .values(each(['name', 'atMs', 'upTo']))
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ atMs: p('atMs'), upTo: p('upTo') })),
);

/** Records that views start from zero, with its audit row. */
export const recordReset = operation(
  'obs.recordReset',
  async (tx, { marks, audit }: { readonly marks: readonly ResetMark[]; readonly audit: AuditRow }): Promise<void> => {
    for (const one of marks) await tx.run(mark, one);
    await appendAudit(tx, audit);
  },
);

export const reportOperations = [
  conversationsOfKey,
  readResets,
  recordReset,
  ...activityOperations,
  ...contextReportOperations,
  ...deliveryOperations,
];
