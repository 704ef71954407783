import { operation, query, type Tx } from '../../../../kernel/db/operation.ts';
import { type ConversationRow, dropMessages, lockConversation } from '../store.ts';

const raiseFloor = query<{ id: number }>(({ db, sql, p }) =>
  db
    .updateTable('conversation')
    .set({ modelSeqFloor: sql<number>`last_seq`, resetCount: sql<number>`reset_count + 1`, taint: sql`case when taint > 1 then 1 else taint end` })
    .where('id', '=', p('id')),
);

/** Hides all messages from the model. Returns undefined when the conversation does not exist. Part of `resetSession`. */
export async function leaveBehind(tx: Tx, ref: string): Promise<{ readonly row: ConversationRow; readonly left: number } | undefined> {
  const row = await lockConversation(tx, ref);
  if (row === undefined) return undefined;
  const left = row.lastSeq - row.modelSeqFloor;
  if (left > 0) await tx.run(raiseFloor, { id: row.id });
  return { row, left };
}

const clear = query<{ id: number }>(({ db, sql, p }) =>
  db
    .updateTable('conversation')
    .set({
      lastSeq: 0,
      indexedSeq: 0,
      messageCount: 0,
      modelSeqFloor: 0,
      title: null,
      name: null,
      tags: '',
      resetCount: sql<number>`reset_count + 1`,
      taint: 0,
    })
    .where('id', '=', p('id')),
);

/** Erases the messages of a conversation and their quotes in its row; identity and usage stay. Part of `resetConversation`. */
export async function eraseMessages(tx: Tx, ref: string): Promise<{ readonly row: ConversationRow; readonly erased: number } | undefined> {
  const row = await lockConversation(tx, ref);
  if (row === undefined) return undefined;
  const erased = await dropMessages(tx, row.id);
  if (erased > 0) await tx.run(clear, { id: row.id });
  return { row, erased };
}

const countOne = query<{ ref: string }>(({ db, sql, p }) =>
  db
    .updateTable('conversation')
    .set({ compactionCount: sql<number>`compaction_count + 1` })
    .where('ref', '=', p('ref')),
);

/** Counts a compaction of a conversation. */
export const countCompaction = operation('sessions.countCompaction', async (tx, input: { readonly ref: string }): Promise<void> => {
  await tx.run(countOne, input);
});

export const resetOperations = [countCompaction];
