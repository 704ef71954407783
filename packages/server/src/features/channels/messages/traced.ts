import { operation, query } from '../../../kernel/db/operation.ts';

/** What a platform calls a chat or a message. */
export interface TracedBy {
  readonly chatId: string | null;
  readonly messageId: string | null;
}

/** What traces know about it: conversations of the chat, and turns that answered the message or sent it. */
export interface Traced {
  readonly conversationRefs: readonly string[];
  readonly turnIds: readonly string[];
}

const most = 1_000;

const refsOf = query<{ chatId: string; most: number }, { conversationRef: string | null }>(({ db, p }) =>
  db
    .selectFrom('channelMessage')
    .select('conversationRef')
    .where('conversationId', '=', p('chatId'))
    .where('conversationRef', 'is not', null)
    .union((both) =>
      both.selectFrom('outboundMessage').select('conversationRef').where('conversationId', '=', p('chatId')).where('conversationRef', 'is not', null),
    )
    .limit(p('most')),
);
const turnsOf = query<{ messageId: string; most: number }, { turnId: string | null }>(({ db, sql, p }) =>
  db
    .selectFrom('outboundMessage')
    .select('turnId')
    .distinct()
    .where(
      sql<boolean>`(platform_id = ${p('messageId')} or id = ${p('messageId')} or op_key in
        (select 'answer:' || id from channel_message where platform_id = ${p('messageId')} or id = ${p('messageId')}))`,
    )
    .where('turnId', 'is not', null)
    .limit(p('most')),
);

/** Finds the conversations of a chat, and the turns of a message in both directions, by the ids of the platform or ours. */
export const findTraced = operation('channels.traced', async (tx, { chatId, messageId }: TracedBy): Promise<Traced> => {
  const refs = chatId === null ? [] : await tx.all(refsOf, { chatId, most });
  const turns = messageId === null ? [] : await tx.all(turnsOf, { messageId, most });
  return { conversationRefs: refs.flatMap(({ conversationRef }) => conversationRef ?? []), turnIds: turns.flatMap(({ turnId }) => turnId ?? []) };
});
