import { decodeAttachments } from '../../../../runtime/stored-message.ts';
import { idBefore } from '../../../../kernel/ids.ts';
import { operation, query } from '../../../../kernel/db/operation.ts';

interface Limit {
  readonly beforeMs: number;
  readonly limit: number;
}

// Ids are ordered by time, so no index of times is needed to find the oldest.
const oldArchives = query<{ beforeId: string; limit: number }, { id: string }>(({ db, p }) =>
  db.selectFrom('sessionArchive').select('id').where('id', '<', p('beforeId')).orderBy('id').limit(p('limit')),
);

/** Deletes some archives of conversations that were deleted before a time; returns how many. */
export const pruneArchives = operation('sessions.pruneArchives', async (tx, { beforeMs, limit }: Limit): Promise<number> => {
  const ids = (await tx.all(oldArchives, { beforeId: idBefore('ar', beforeMs), limit })).map(({ id }) => id);
  if (ids.length > 0) await tx.build((db) => db.deleteFrom('sessionArchive').where('id', 'in', ids));
  return ids.length;
});

const oldest = query<object, { atMs: number }>(({ db }) => db.selectFrom('sessionArchive').select('archivedAtMs as atMs').orderBy('id').limit(1));

/** Returns when the oldest archive that is kept was made. */
export const oldestArchive = operation('sessions.oldestArchive', async (tx): Promise<number | undefined> => (await tx.get(oldest, {}))?.atMs);

const oldReasoning = query<Limit, { id: number }>(({ db, sql, p }) =>
  db
    .selectFrom('message')
    .select('id')
    .where(sql<boolean>`reasoning_json IS NOT NULL`)
    .where('createdAtMs', '<', p('beforeMs'))
    .orderBy('createdAtMs')
    .limit(p('limit')),
);

/** Removes the reasoning of some messages that are older than a time; returns of how many. The messages stay. */
export const pruneReasoning = operation('sessions.pruneReasoning', async (tx, due: Limit): Promise<number> => {
  const ids = (await tx.all(oldReasoning, due)).map(({ id }) => id);
  if (ids.length > 0) await tx.build((db) => db.updateTable('message').set({ reasoningJson: null }).where('id', 'in', ids));
  return ids.length;
});

const firstReasoning = query<object, { atMs: number }>(({ db, sql }) =>
  db
    .selectFrom('message')
    .select('createdAtMs as atMs')
    .where(sql<boolean>`reasoning_json IS NOT NULL`)
    .orderBy('createdAtMs')
    .limit(1),
);

/** Returns the time of the oldest message that has its reasoning. */
export const oldestReasoning = operation(
  'sessions.oldestReasoning',
  async (tx): Promise<number | undefined> => (await tx.get(firstReasoning, {}))?.atMs,
);

const oldestUse = query<object, { atMs: number }>(({ db, sql }) =>
  db
    .selectFrom('conversation')
    .select('updatedAtMs as atMs')
    .where(sql<boolean>`kind = 'sub-agent'`)
    .orderBy('updatedAtMs')
    .limit(1),
);

/** Returns when the conversation of a sub-agent that was not used for the longest time was used last. */
export const oldestRunConversation = operation(
  'sessions.oldestOfRuns',
  async (tx): Promise<number | undefined> => (await tx.get(oldestUse, {}))?.atMs,
);

/** Messages with attachments that one page reads. */
const attachedAtOnce = 1_000;
const attached = query<{ afterId: number }, { id: number; attachmentsJson: string }>(({ db, sql, p }) =>
  db
    .selectFrom('message')
    .select(['id', sql<string>`attachments_json`.as('attachmentsJson')])
    .where(sql<boolean>`attachments_json IS NOT NULL`)
    .where('id', '>', p('afterId'))
    .orderBy('id')
    .limit(attachedAtOnce),
);

/** Returns the media that messages have attached, by id of the message, and the last id of a page that may have a next one. */
export const attachedMedia = operation('sessions.attachedMedia', async (tx, { afterId }: { readonly afterId: number }) => {
  const rows = await tx.all(attached, { afterId });
  const mediaIds = rows.flatMap(({ attachmentsJson }) => decodeAttachments(attachmentsJson).map(({ mediaId }) => mediaId));
  return { mediaIds, nextId: rows.length < attachedAtOnce ? undefined : rows.at(-1)?.id };
});

export const sessionRetentionOperations = [attachedMedia, pruneArchives, oldestArchive, pruneReasoning, oldestReasoning, oldestRunConversation];
