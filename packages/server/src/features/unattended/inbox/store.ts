import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import type { InboxMessage } from './api.ts';

/** Maximum messages per principal; the oldest are dropped. */
export const maxKept = 1_000;
/** Maximum characters of one message. */
export const maxTextCharacters = 32_768;

export interface InboxRow extends InboxMessage {
  readonly readAtMs: number | null;
}

const deliveredColumns = ['id', 'opKey', 'digest', 'source', 'agentId', 'conversationRef', 'principalId', 'level', 'text'] as const;

const insert = query<InboxMessage>(({ db, each, p }) =>
  db
    .insertInto('inboxMessage')
    .values({
      ...each(deliveredColumns),
      createdAtMs: p('atMs'),
      readAtMs: null,
    })
    .onConflict((conflict) => conflict.column('opKey').doNothing()),
);

const delivered = query<{ opKey: string }, { digest: string }>(({ db, p }) =>
  db.selectFrom('inboxMessage').select('digest').where('opKey', '=', p('opKey')),
);

// Messages in the future date from before a backward clock step, so their ids do not reflect their age.
const beyond = query<{ principalId: string; kept: number; atMs: number }>(({ db, sql, p }) =>
  db.deleteFrom('inboxMessage').where(
    sql<boolean>`id in (select id from inbox_message where principal_id = ${p('principalId')}
        order by created_at_ms > ${p('atMs')}, id desc limit 100 offset ${p('kept')})`,
  ),
);

/**
 * Delivers a message inside the transaction of the event it reports. `repeated`: already delivered; `mismatch`: the key
 * was used for something else, nothing is delivered. Part of `deliverMessage`; after the commit, call `InboxApi.announce` for `accepted`.
 */
export async function inboxDeliver(tx: Tx, message: InboxMessage): Promise<'accepted' | 'repeated' | 'mismatch'> {
  const text = message.text.length <= maxTextCharacters ? message.text : `${message.text.slice(0, maxTextCharacters - 2).toWellFormed()} …`;
  const { id, opKey, digest, source, agentId, conversationRef, principalId, level, atMs } = message;
  const { changes } = await tx.run(insert, { id, opKey, digest, source, agentId, conversationRef, principalId, level, text, atMs });
  if (changes === 0) return (await tx.get(delivered, { opKey }))?.digest === digest ? 'repeated' : 'mismatch';
  await tx.run(beyond, { principalId, kept: maxKept, atMs });
  return 'accepted';
}

const remove = query<{ opKey: string }>(({ db, p }) => db.deleteFrom('inboxMessage').where('opKey', '=', p('opKey')));

/** Removes an unannounced message, inside the transaction that reverts the event it reports. */
export async function inboxRemove(tx: Tx, input: { readonly opKey: string }): Promise<void> {
  await tx.run(remove, input);
}

/** Whose messages are visible; null means all. */
export interface InboxReach {
  readonly principalId: string | null;
  readonly agentIds: readonly string[] | null;
}

interface Page extends InboxReach {
  readonly unreadOnly: boolean;
  readonly before: string | null;
  readonly limit: number;
}

/** Lists messages, newest first, with the number of unread messages in reach. */
export const listInbox = operation(
  'inbox.list',
  async (tx, { principalId, agentIds, unreadOnly, before, limit }: Page): Promise<{ rows: InboxRow[]; unread: number }> => {
    const rows = await tx.build<InboxRow>((db) => {
      let from = db.selectFrom('inboxMessage');
      if (principalId !== null) from = from.where('principalId', '=', principalId);
      if (agentIds !== null) from = from.where('agentId', 'in', agentIds);
      if (unreadOnly) from = from.where('readAtMs', 'is', null);
      if (before !== null) from = from.where('id', '<', before);
      return from
        .select([...deliveredColumns, 'createdAtMs as atMs', 'readAtMs'])
        .orderBy('id', 'desc')
        .limit(limit);
    });
    const [count] = await tx.build<{ unread: number }>((db, sql) => {
      let from = db.selectFrom('inboxMessage').where('readAtMs', 'is', null);
      if (principalId !== null) from = from.where('principalId', '=', principalId);
      if (agentIds !== null) from = from.where('agentId', 'in', agentIds);
      return from.select(sql<number>`count(*)`.as('unread'));
    });
    return { rows, unread: count?.unread ?? 0 };
  },
);

/** Marks messages in reach as read, or all of them without `ids`; returns how many were unread. */
export const markInboxRead = operation(
  'inbox.markRead',
  async (
    tx,
    { principalId, agentIds, ids, atMs }: InboxReach & { readonly ids: readonly string[] | null; readonly atMs: number },
  ): Promise<number> => {
    const changed = await tx.build<{ id: string }>((db) => {
      let rows = db.updateTable('inboxMessage').set({ readAtMs: atMs }).where('readAtMs', 'is', null);
      if (principalId !== null) rows = rows.where('principalId', '=', principalId);
      if (agentIds !== null) rows = rows.where('agentId', 'in', agentIds);
      if (ids !== null) rows = rows.where('id', 'in', ids);
      return rows.returning('id');
    });
    return changed.length;
  },
);

export const inboxOperations = [listInbox, markInboxRead];
