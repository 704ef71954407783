import { operation, query, type Tx } from '../../../../kernel/db/operation.ts';

/** Tokens of the column `part`, which restrict a search inside the index. A final digit prevents stemming; hexadecimal allows no separators. */
export const part = {
  agent: (id: string) => `a${hex(id)}0`,
  principal: (id: string) => `p${hex(id)}0`,
  conversation: (id: number) => `c${id}`,
  role: (role: string) => `r${hex(role)}0`,
  kind: (kind: string) => `k${hex(kind)}0`,
} as const;

const hex = (text: string) => Buffer.from(text).toString('hex');

const indexedTo = query<object, { to: number }>(({ db }) => db.selectFrom('messageIndex').select('indexedTo as to'));

/** Returns the id up to which messages are indexed. */
export async function readIndexedTo(tx: Tx): Promise<number> {
  return (await tx.get(indexedTo, {}))?.to ?? 0;
}

const setIndexedTo = query<{ to: number }>(({ db, p }) => db.updateTable('messageIndex').set({ indexedTo: p('to') }));

const waiting = query<{ after: number; limit: number }, { id: number; bytes: number }>(({ db, sql, p }) =>
  db
    .selectFrom('message')
    .select(['id', sql<number>`octet_length(content)`.as('bytes')])
    .where('id', '>', p('after'))
    .orderBy('id')
    .limit(p('limit')),
);

/** After an import into another engine, whose index is empty: all messages are indexed again, behind the turns. */
export const indexAllAgain = 'UPDATE message_index SET indexed_to = 0';

/** Copies rows into the index without reading them into memory. PostgreSQL keeps the tokens of `part` with the words. */
const fillIndex = query<{ after: number; to: number }>(({ db, sql, dialect, p }) => {
  const rows = db
    .selectFrom('message')
    .innerJoin('conversation', 'conversation.id', 'message.conversationId')
    .select('message.id')
    .where('message.id', '>', p('after'))
    .where('message.id', '<=', p('to'))
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
  return db
    .insertInto('messageFts')
    .columns(['rowid', 'body'])
    .expression(rows.select(sql`text_words(content) || array_to_tsvector(${tokens})`.as('body')));
});

/** Indexes the next messages; `more` when others remain. The limits keep commits of turns from waiting long. */
export const indexMessages = operation(
  'sessions.index',
  async (tx, { maxRows, maxBytes }: { readonly maxRows: number; readonly maxBytes: number }): Promise<{ rows: number; more: boolean }> => {
    const after = await readIndexedTo(tx);
    const next = await tx.all(waiting, { after, limit: maxRows });
    let bytes = 0;
    const within = next.filter((row, index) => (bytes += row.bytes) <= maxBytes || index === 0);
    const to = within.at(-1)?.id;
    if (to === undefined) return { rows: 0, more: false };
    await tx.run(fillIndex, { after, to });
    await tx.run(setIndexedTo, { to });
    return { rows: within.length, more: within.length < next.length || next.length === maxRows };
  },
);

const unindex = query<{ conversationId: number }>(({ db, p }) =>
  db.deleteFrom('messageFts').where('rowid', 'in', db.selectFrom('message').select('id').where('conversationId', '=', p('conversationId'))),
);
const lowerIndexedTo = query<object>(({ db, sql }) =>
  db
    .updateTable('messageIndex')
    .set({ indexedTo: sql<number>`(SELECT coalesce(max(id), 0) FROM message)` })
    .where('indexedTo', '>', sql<number>`(SELECT coalesce(max(id), 0) FROM message)`),
);

/** Removes the messages of a conversation from the index, and from their table through `remove`. */
export async function unindexMessages<T>(tx: Tx, conversationId: number, remove: () => Promise<T>): Promise<T> {
  await tx.run(unindex, { conversationId });
  const removed = await remove();
  // The ids of the newest rows are reused by messages that are not indexed yet.
  await tx.run(lowerIndexedTo, {});
  return removed;
}

export const indexOperations = [indexMessages];
