import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import type { Destination } from '../delivery/api.ts';
import type { Admission, NewNotification, NotificationRow, NotificationState } from './api.ts';

const hourMs = 60 * 60_000;
/** Rows are known at least this long. */
const keptMs = 30 * 24 * hourMs;
/** Old ones that are deleted with each new one. */
const prunedAtOnce = 8;
/** Open ones that a start takes over. */
const mostOpen = 10_000;

const columns = [
  'id',
  'agentId',
  'principalId',
  'instance',
  'channelType',
  'conversationId',
  'digest',
  'priority',
  'opKey',
  'entryId',
  'state',
  'createdAtMs',
] as const;

const countSince = query<{ agentId: string; sinceMs: number }, { n: number }>(({ db, sql, p }) =>
  db
    .selectFrom('channelNotification')
    .select(sql<number>`count(*)`.as('n'))
    .where('agentId', '=', p('agentId'))
    .where('createdAtMs', '>', p('sinceMs')),
);
const sameSince = query<{ agentId: string; digest: string; sinceMs: number }, { id: string }>(({ db, p }) =>
  db
    .selectFrom('channelNotification')
    .select('id')
    .where('agentId', '=', p('agentId'))
    .where('createdAtMs', '>', p('sinceMs'))
    .where('digest', '=', p('digest'))
    .limit(1),
);
const insert = query<NotificationRow>(({ db, each }) => db.insertInto('channelNotification').values({ ...each(columns), endedAtMs: null }));
const old = query<{ beforeMs: number; limit: number }>(({ db, p }) =>
  db
    .deleteFrom('channelNotification')
    .where(
      'id',
      'in',
      db.selectFrom('channelNotification').select('id').where('createdAtMs', '<', p('beforeMs')).where('endedAtMs', 'is not', null).limit(p('limit')),
    ),
);

/** Enters a notification within the limits of its agent. Part of `sendNotification`. */
export async function admitNotification(tx: Tx, { row, maxPerHour, dedupeWindowMs }: Omit<NewNotification, 'parts'>): Promise<Admission> {
  const { agentId, digest, createdAtMs: atMs } = row;
  if (((await tx.get(countSince, { agentId, sinceMs: atMs - hourMs }))?.n ?? 0) >= maxPerHour) return 'rate_limited';
  if ((await tx.get(sameSince, { agentId, digest, sinceMs: atMs - dedupeWindowMs })) !== undefined) return 'duplicate';
  await tx.run(insert, row);
  await tx.run(old, { beforeMs: atMs - keptMs, limit: prunedAtOnce });
  return 'accepted';
}

const open = query<{ limit: number }, NotificationRow>(({ db, p }) =>
  db.selectFrom('channelNotification').select(columns).where('endedAtMs', 'is', null).orderBy('id').limit(p('limit')),
);

/** Returns the notifications that have not ended. */
export const readOpen = operation('notifications.open', (tx): Promise<NotificationRow[]> => tx.all(open, { limit: mostOpen }));

const end = query<{ id: string; state: NotificationState; atMs: number }>(({ db, p }) =>
  db
    .updateTable('channelNotification')
    .set({ state: p('state'), endedAtMs: p('atMs') })
    .where('id', '=', p('id'))
    .where('endedAtMs', 'is', null),
);

/** Ends a notification; false when it had ended. */
export const endNotification = operation(
  'notifications.end',
  async (tx, input: { readonly id: string; readonly state: 'delivered' | 'failed'; readonly atMs: number }): Promise<boolean> =>
    (await tx.run(end, input)).changes > 0,
);

export interface Wanted {
  /** Null: all agents. */
  readonly agentIds: readonly string[] | null;
  readonly principalId: string | null;
  readonly channelType: string | null;
  readonly conversationId: string | null;
  readonly instance: string | null;
}

/** A conversation with an agent. */
export interface Place extends Destination {
  readonly agentId: string;
  readonly principalId: string;
  readonly conversationRef: string;
}

/** Conversations among which one is chosen. */
const maxPlaces = 50;

/** Returns conversations with an agent, that with the newest message first; direct ones where none is named. */
export const findPlaces = operation('notifications.places', async (tx, wanted: Wanted): Promise<Place[]> => {
  const rows = await tx.build<Omit<Place, 'conversationRef'> & { conversationRef: string | null }>((db) => {
    let from = db
      .selectFrom('channelMessage')
      .innerJoin('conversation', 'conversation.ref', 'channelMessage.conversationRef')
      .where('verdict', '=', 'turn');
    const { agentIds, principalId, channelType, conversationId, instance } = wanted;
    if (agentIds !== null) from = from.where('channelMessage.agentId', 'in', agentIds);
    if (principalId !== null) from = from.where('conversation.principalId', '=', principalId);
    if (channelType !== null) from = from.where('channelType', '=', channelType);
    if (instance !== null) from = from.where('instance', '=', instance);
    from = conversationId === null ? from.where('conversationKind', '=', 'direct') : from.where('channelMessage.conversationId', '=', conversationId);
    return from
      .select([
        'instance',
        'channelType',
        'channelMessage.conversationId',
        'threadId',
        'conversationKind',
        'channelMessage.agentId',
        'conversation.principalId',
        'channelMessage.conversationRef',
      ])
      .orderBy('channelMessage.id', 'desc')
      .limit(maxPlaces);
  });
  return rows.flatMap((row) => (row.conversationRef === null ? [] : [{ ...row, conversationRef: row.conversationRef }]));
});

export const notificationOperations = [readOpen, endNotification, findPlaces];
