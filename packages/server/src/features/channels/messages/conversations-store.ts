import { operation, query, type Tx } from '../../../kernel/db/operation.ts';
import { idBefore } from '../../../kernel/ids.ts';
import { messageKind } from './store.ts';

/** A conversation, or a thread of it. */
export interface Place {
  readonly instance: string;
  readonly channelType: string;
  readonly conversationId: string;
  readonly threadId: string | null;
}

/** The agent that somebody chose for a conversation. */
export interface Choice extends Place {
  readonly agentId: string;
  readonly atMs: number;
}

interface Conversations {
  readonly instance: string;
  readonly channelType: string;
  readonly conversationIds: readonly string[];
}

const choicesOf = query<{ instance: string; channelType: string; conversationIds: string }, Pick<Choice, 'conversationId' | 'threadId' | 'agentId'>>(
  ({ db, json, p }) =>
    db
      .selectFrom('channelAgent')
      .select(['conversationId', 'threadId', 'agentId'])
      .where('instance', '=', p('instance'))
      .where('channelType', '=', p('channelType'))
      .where('conversationId', 'in', json.texts(p('conversationIds'))),
);

/** Returns the agents that were chosen for conversations and their threads; an empty thread is the whole conversation. */
export const findChoices = operation('channels.findChoices', (tx, { instance, channelType, conversationIds }: Conversations) =>
  tx.all(choicesOf, { instance, channelType, conversationIds: JSON.stringify(conversationIds) }),
);

const put = query<Choice & { threadId: string }>(({ db, p }) =>
  db
    .insertInto('channelAgent')
    .values({
      instance: p('instance'),
      channelType: p('channelType'),
      conversationId: p('conversationId'),
      threadId: p('threadId'),
      agentId: p('agentId'),
      atMs: p('atMs'),
    })
    .onConflict((conflict) =>
      conflict.columns(['instance', 'channelType', 'conversationId', 'threadId']).doUpdateSet({ agentId: p('agentId'), atMs: p('atMs') }),
    ),
);

/** Stores a choice, in the commit of the message that made it. */
export async function saveChoice(tx: Tx, choice: Choice): Promise<void> {
  await tx.run(put, { ...choice, threadId: choice.threadId ?? '' });
}

const joined = query<{ instance: string; conversationId: string; threadIds: string; sinceId: string }, { threadId: string }>(({ db, json, sql, p }) =>
  db
    .selectFrom('channelMessage')
    .select(sql<string>`thread_id`.as('threadId'))
    .distinct()
    .where('instance', '=', p('instance'))
    .where('conversationId', '=', p('conversationId'))
    .where('threadId', 'in', json.texts(p('threadIds')))
    .where('verdict', '=', 'turn')
    .where('id', '>=', p('sinceId')),
);

/** Returns the threads of a conversation in which the agent was asked since a time. */
export const findJoined = operation(
  'channels.findJoined',
  async (
    tx,
    {
      threadIds,
      sinceMs,
      instance,
      conversationId,
    }: { readonly instance: string; readonly conversationId: string; readonly threadIds: readonly string[]; readonly sinceMs: number },
  ): Promise<string[]> => {
    const found = await tx.all(joined, { instance, conversationId, sinceId: idBefore('cm', sinceMs), threadIds: JSON.stringify(threadIds) });
    return found.map(({ threadId }) => threadId);
  },
);

const newest = query<{ instance: string; conversationId: string; limit: number }, { isBot: 0 | 1 }>(({ db, p }) =>
  db
    .selectFrom('channelMessage')
    .select('isBot')
    .where('instance', '=', p('instance'))
    .where('conversationId', '=', p('conversationId'))
    .where('verdict', '=', 'turn')
    .orderBy('id', 'desc')
    .limit(p('limit')),
);

/** Counts the messages of bots that were answered in a conversation since the last one of a person, up to a number. */
export const countBotTurns = operation(
  'channels.countBotTurns',
  async (tx, input: { readonly instance: string; readonly conversationId: string; readonly limit: number }): Promise<number> => {
    const rows = await tx.all(newest, input);
    const person = rows.findIndex(({ isBot }) => isBot === 0);
    return person === -1 ? rows.length : person;
  },
);

/** Pending messages of a conversation; of more the sender is notified, and they are recorded. */
const maxWaiting = 100;

const waiting = query<{ conversationRef: string; recent: number }, { n: number }>(({ db, sql, p }) =>
  db
    .selectFrom('workItem')
    .select(sql<number>`count(*)`.as('n'))
    .where('kind', '=', messageKind)
    .where('endedAtMs', 'is', null)
    .where(
      sql<boolean>`work_key in (select id from channel_message where conversation_ref = ${p('conversationRef')} order by id desc limit ${p('recent', 'integer')})`,
    ),
);

/** Returns whether no further message of a conversation is queued. They are answered in order: the pending ones are among the newest. */
export async function isQueueFull(tx: Tx, { conversationRef }: { readonly conversationRef: string }): Promise<boolean> {
  return ((await tx.get(waiting, { conversationRef, recent: maxWaiting * 2 }))?.n ?? 0) >= maxWaiting;
}

const waitingOf = query<{ conversationRef: string; senderId: string; recent: number }, { id: string }>(({ db, sql, p }) =>
  db
    .selectFrom('channelMessage')
    .innerJoin('workItem', (join) => join.onRef('workItem.workKey', '=', 'channelMessage.id').on('workItem.kind', '=', messageKind))
    .select('channelMessage.id')
    .where(
      sql<boolean>`channel_message.id in (select id from channel_message where conversation_ref = ${p('conversationRef')} order by id desc limit ${p('recent', 'integer')})`,
    )
    .where('channelMessage.senderId', '=', p('senderId'))
    .where(sql<boolean>`work_item.state = 'accepted' and work_item.attempts = 0 and work_item.resumes = 0`)
    .orderBy('channelMessage.id', 'desc')
    .limit(1),
);

/** Returns the newest message of a sender in a conversation whose turn has not started. */
export async function findWaiting(tx: Tx, author: { readonly conversationRef: string; readonly senderId: string }): Promise<string | undefined> {
  return (await tx.get(waitingOf, { ...author, recent: maxWaiting * 2 }))?.id;
}

export const channelPlaceOperations = [findChoices, findJoined, countBotTurns];
