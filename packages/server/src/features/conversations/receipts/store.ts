import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import type { ReceiptRow } from './api.ts';

/** Replaces the row of the same key: the outcome replaces the opening, a new turn an expired receipt. */
const upsert = query<ReceiptRow>(({ db, sql, each, p }) =>
  db
    .insertInto('receipt')
    .values({ ...each(['principalId', 'digest', 'conversationRef', 'outcomeJson', 'createdAtMs', 'expiresAtMs']), idempotencyKey: p('key') })
    .onConflict((conflict) =>
      conflict.columns(['principalId', 'idempotencyKey']).doUpdateSet({
        digest: sql<string>`excluded.digest`,
        conversationRef: sql<string>`excluded.conversation_ref`,
        outcomeJson: sql<string | null>`excluded.outcome_json`,
        createdAtMs: sql<number>`excluded.created_at_ms`,
        expiresAtMs: sql<number>`excluded.expires_at_ms`,
      }),
    ),
);

/** Stores a receipt. Called in the transaction of its turn. */
export const keepReceipt = operation('receipts.keep', async (tx, row: ReceiptRow): Promise<void> => {
  await tx.run(upsert, row);
});

const forgetOutcome = query<{ conversationRef: string }>(({ db, p }) =>
  db.updateTable('receipt').set({ outcomeJson: null }).where('conversationRef', '=', p('conversationRef')),
);

/** Removes the answers from a conversation's receipts. The keys stay used, so that nothing is repeated. Part of `deleteConversation`. */
export async function forgetReceipts(tx: Tx, conversationRef: string): Promise<void> {
  await tx.run(forgetOutcome, { conversationRef });
}

const live = query<{ principalId: string; key: string; atMs: number }, Pick<ReceiptRow, 'digest' | 'outcomeJson'>>(({ db, p }) =>
  db
    .selectFrom('receipt')
    .select(['digest', 'outcomeJson'])
    .where('principalId', '=', p('principalId'))
    .where('idempotencyKey', '=', p('key'))
    .where('expiresAtMs', '>', p('atMs')),
);

/** Returns the receipt of a key, unless it has expired. */
export const findReceipt = operation(
  'receipts.find',
  async (tx, input: { readonly principalId: string; readonly key: string; readonly atMs: number }) => tx.get(live, input),
);

const deleteExpired = query<{ atMs: number }>(({ db, p }) => db.deleteFrom('receipt').where('expiresAtMs', '<=', p('atMs')));

export const pruneReceipts = operation('receipts.prune', async (tx, input: { readonly atMs: number }): Promise<void> => {
  await tx.run(deleteExpired, input);
});

export const receiptOperations = [keepReceipt, findReceipt, pruneReceipts];
