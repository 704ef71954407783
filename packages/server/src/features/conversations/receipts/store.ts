import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import type { ReceiptRow } from './api.ts';

/** Replaces the row of the same key: the outcome replaces the opening, a new turn an expired receipt. */
const upsert = query<ReceiptRow>(({ db, sql, p }) =>
  db
    .insertInto('receipt')
    .values({
      principal_id: p('principalId'),
      idempotency_key: p('key'),
      digest: p('digest'),
      conversation_ref: p('conversationRef'),
      outcome_json: p('outcomeJson'),
      created_at_ms: p('createdAtMs'),
      expires_at_ms: p('expiresAtMs'),
    })
    .onConflict((conflict) =>
      conflict.columns(['principal_id', 'idempotency_key']).doUpdateSet({
        digest: sql`excluded.digest`,
        conversation_ref: sql`excluded.conversation_ref`,
        outcome_json: sql`excluded.outcome_json`,
        created_at_ms: sql`excluded.created_at_ms`,
        expires_at_ms: sql`excluded.expires_at_ms`,
      }),
    ),
);

/** Stores a receipt. Called in the transaction of its turn. */
export const keepReceipt = operation('receipts.keep', async (tx, row: ReceiptRow): Promise<void> => {
  await tx.run(upsert, row);
});

const forgetOutcome = query<{ conversationRef: string }>(({ db, p }) =>
  db.updateTable('receipt').set({ outcome_json: null }).where('conversation_ref', '=', p('conversationRef')),
);

/** Removes the answers from a conversation's receipts. The keys stay used, so that nothing is repeated. Part of `deleteConversation`. */
export async function forgetReceipts(tx: Tx, conversationRef: string): Promise<void> {
  await tx.run(forgetOutcome, { conversationRef });
}

const live = query<{ principalId: string; key: string; atMs: number }, Pick<ReceiptRow, 'digest' | 'outcomeJson'>>(({ db, p }) =>
  db
    .selectFrom('receipt')
    .select(['digest', 'outcome_json as outcomeJson'])
    .where('principal_id', '=', p('principalId'))
    .where('idempotency_key', '=', p('key'))
    .where('expires_at_ms', '>', p('atMs')),
);

/** Returns the receipt of a key, unless it has expired. */
export const findReceipt = operation(
  'receipts.find',
  async (tx, input: { readonly principalId: string; readonly key: string; readonly atMs: number }) => tx.get(live, input),
);

const deleteExpired = query<{ atMs: number }>(({ db, p }) => db.deleteFrom('receipt').where('expires_at_ms', '<=', p('atMs')));

export const pruneReceipts = operation('receipts.prune', async (tx, input: { readonly atMs: number }): Promise<void> => {
  await tx.run(deleteExpired, input);
});

export const receiptOperations = [keepReceipt, findReceipt, pruneReceipts];
