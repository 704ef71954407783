import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import { ofDeadBoot } from '../../../kernel/owners.ts';
import type { ReceiptRow } from './api.ts';

/** Replaces the row of the same key: the outcome replaces the opening, a new turn an expired receipt or one that a crash left. */
const upsert = query<ReceiptRow>(({ db, sql, each, p }) =>
  db
    .insertInto('receipt')
    .values({
      ...each(['principalId', 'digest', 'conversationRef', 'state', 'bootId', 'outcomeJson', 'createdAtMs', 'expiresAtMs']),
      idempotencyKey: p('key'),
    })
    .onConflict((conflict) =>
      conflict.columns(['principalId', 'idempotencyKey']).doUpdateSet({
        digest: sql<string>`excluded.digest`,
        conversationRef: sql<string>`excluded.conversation_ref`,
        state: sql<ReceiptRow['state']>`excluded.state`,
        bootId: sql<string>`excluded.boot_id`,
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

type LiveRow = Pick<ReceiptRow, 'digest' | 'outcomeJson' | 'state' | 'bootId'> & { readonly isDead: 0 | 1 };

const live = query<{ principalId: string; key: string; atMs: number }, LiveRow>(({ db, sql, p }) =>
  db
    .selectFrom('receipt')
    .select(['digest', 'outcomeJson', 'state', 'bootId', sql<0 | 1>`case when ${ofDeadBoot(sql, 'receipt.bootId')} then 1 else 0 end`.as('isDead')])
    .where('principalId', '=', p('principalId'))
    .where('idempotencyKey', '=', p('key'))
    .where('expiresAtMs', '>', p('atMs')),
);

/** The receipt of a key. */
export interface FoundReceipt extends Pick<ReceiptRow, 'digest' | 'outcomeJson'> {
  /** Its turn runs in another daemon. */
  readonly isElsewhere: boolean;
}

/**
 * Stores the receipt of a turn that begins, so that every daemon knows of it; or returns that of the key. A turn that died before it
 * did anything that must not be repeated is replaced, like one whose receipt has expired.
 */
export const beginReceipt = operation(
  'receipts.begin',
  async (tx, { row, ageNowMs }: { readonly row: ReceiptRow; readonly ageNowMs: number }): Promise<FoundReceipt | undefined> => {
    const { principalId, key, bootId } = row;
    const found = await tx.get(live, { principalId, key, atMs: ageNowMs });
    // The caller knows what runs in its own boot.
    const isOver = found === undefined || found.isDead === 1 || found.bootId === bootId;
    if (found !== undefined && !(isOver && found.state === 'running'))
      return { digest: found.digest, outcomeJson: found.outcomeJson, isElsewhere: !isOver && found.state !== 'ended' };
    await tx.run(upsert, row);
    return undefined;
  },
);

const drop = query<{ principalId: string; key: string; bootId: string }>(({ db, p }) =>
  db
    .deleteFrom('receipt')
    .where('principalId', '=', p('principalId'))
    .where('idempotencyKey', '=', p('key'))
    .where('bootId', '=', p('bootId'))
    .where('state', '=', 'running'),
);

/** Frees the key of a turn that had no effect. */
export const dropReceipt = operation(
  'receipts.drop',
  async (tx, input: { readonly principalId: string; readonly key: string; readonly bootId: string }): Promise<void> => {
    await tx.run(drop, input);
  },
);

const deleteExpired = query<{ atMs: number }>(({ db, p }) => db.deleteFrom('receipt').where('expiresAtMs', '<=', p('atMs')));

export const pruneReceipts = operation('receipts.prune', async (tx, input: { readonly atMs: number }): Promise<void> => {
  await tx.run(deleteExpired, input);
});

export const receiptOperations = [keepReceipt, beginReceipt, dropReceipt, pruneReceipts];
