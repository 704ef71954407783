import { type Database, operation, query, type Tx } from '../../../../kernel/db/operation.ts';

/** Tokens of the column `part`, which restrict a search inside the index. A final digit prevents stemming; hexadecimal allows no separators. */
export const part = {
  agent: (id: string) => `a${hex(id)}0`,
  principal: (id: string) => `p${hex(id)}0`,
  conversation: (id: number) => `c${id}`,
  role: (role: string) => `r${hex(role)}0`,
  kind: (kind: string) => `k${hex(kind)}0`,
} as const;

const hex = (text: string) => Buffer.from(text).toString('hex');

/**
 * Messages that are not indexed, by conversation. Each conversation has a separate mark, because the ids of messages do not show
 * what is new: with several writers one may become visible after others with higher ids. The numbers within a conversation do, as
 * its row is written with each of them.
 */
export const unindexed = (db: Database) =>
  db
    .selectFrom('conversation')
    .innerJoin('message', (join) => join.onRef('message.conversationId', '=', 'conversation.id').onRef('message.seq', '>', 'conversation.indexedSeq'))
    .whereRef('conversation.indexedSeq', '<', 'conversation.lastSeq');

interface Waiting {
  readonly id: number;
  readonly conversationId: number;
  readonly seq: number;
  readonly bytes: number;
}

const waiting = query<{ limit: number }, Waiting>(({ db, sql, p }) =>
  unindexed(db)
    .select(['message.id', 'message.conversationId', 'message.seq', sql<number>`octet_length(content)`.as('bytes')])
    .orderBy('conversation.id')
    .orderBy('message.seq')
    .limit(p('limit')),
);

/** After an import into another engine, whose index is empty: all messages are indexed again, behind the turns. */
export const indexAllAgain = 'UPDATE conversation SET indexed_seq = 0';

/** Copies rows into the index without reading them into memory. PostgreSQL keeps the tokens of `part` with the words. */
const fillIndex = (tx: Tx, ids: readonly number[]) =>
  tx.build((db, sql, dialect) => {
    const rows = db
      .selectFrom('message')
      .innerJoin('conversation', 'conversation.id', 'message.conversationId')
      .select('message.id')
      .where('message.id', 'in', ids)
      .where('message.content', '<>', '');
    if (dialect === 'sqlite') {
      const tokens = sql`'a' || lower(hex(agent_id)) || '0 p' || lower(hex(principal_id)) || '0 c' || conversation.id || ' r' || lower(hex(role)) || '0 k' || lower(hex(kind)) || '0'`;
      return db
        .insertInto('messageFts')
        .columns(['rowid', 'body', 'part'])
        .expression(rows.select(['message.content', tokens.as('part')]));
    }
    const tokens = sql`ARRAY['=a' || text_hex(agent_id) || '0', '=p' || text_hex(principal_id) || '0', '=c' || conversation.id,
      '=r' || text_hex(role) || '0', '=k' || text_hex(kind) || '0']`;
    return (
      db
        .insertInto('messageFts')
        .columns(['rowid', 'body'])
        .expression(rows.select(sql`text_words(content) || array_to_tsvector(${tokens})`.as('body')))
        // A row that another daemon inserts at the same time is a conflict, and this runs again, instead of a duplicate key.
        .onConflict((conflict) => conflict.doNothing())
    );
  });

const markIndexed = query<{ id: number; seq: number }>(({ db, p }) =>
  db
    .updateTable('conversation')
    .set({ indexedSeq: p('seq') })
    .where('id', '=', p('id')),
);

/** Indexes the next messages; `more` when others remain. The limits keep commits of turns from waiting long. */
export const indexMessages = operation(
  'sessions.index',
  async (tx, { maxRows, maxBytes }: { readonly maxRows: number; readonly maxBytes: number }): Promise<{ rows: number; more: boolean }> => {
    const next = await tx.all(waiting, { limit: maxRows });
    let bytes = 0;
    const within = next.filter((row, index) => (bytes += row.bytes) <= maxBytes || index === 0);
    if (within.length === 0) return { rows: 0, more: false };
    await fillIndex(
      tx,
      within.map(({ id }) => id),
    );
    const lastSeqs = new Map(within.map(({ conversationId, seq }) => [conversationId, seq]));
    for (const [id, seq] of lastSeqs) await tx.run(markIndexed, { id, seq });
    return { rows: within.length, more: within.length < next.length || next.length === maxRows };
  },
);

const unindex = query<{ conversationId: number }>(({ db, p }) =>
  db.deleteFrom('messageFts').where('rowid', 'in', db.selectFrom('message').select('id').where('conversationId', '=', p('conversationId'))),
);

/** Removes the messages of a conversation from the index; call before they are deleted. */
export async function unindexMessages(tx: Tx, conversationId: number): Promise<void> {
  await tx.run(unindex, { conversationId });
}

export const indexOperations = [indexMessages];
