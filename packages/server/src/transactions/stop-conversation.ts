import { messageKind } from '../features/channels/messages/store.ts';
import { cancelWork, endWaitingIn } from '../features/unattended/durable/store.ts';
import { operation, query } from '../kernel/db/operation.ts';

const queued = query<{ ref: string }, { id: string }>(({ db, sql, p }) =>
  db
    .selectFrom('workItem')
    .select('id')
    .where('kind', '=', messageKind)
    .where(sql<boolean>`state = 'accepted'`)
    .where('waitingJson', 'is', null)
    .where(sql<boolean>`work_key in (select id from channel_message where conversation_ref = ${p('ref')})`)
    .forUpdate(),
);
const activeRoots = query<{ ref: string }, { id: string }>(({ db, sql, p }) =>
  db
    .selectFrom('rootRun')
    .select('id')
    .where('conversationRef', '=', p('ref'))
    .where(sql<boolean>`state = 'active'`)
    .limit(200),
);

export interface StoppedConversation {
  /** Number of messages that no turn had taken up. */
  readonly messages: number;
  /** Root runs with work that has not ended. */
  readonly roots: readonly string[];
}

/** Ends the messages of a conversation that no turn has taken up, and marks its waiting work to be given up; returns what else it started. */
export const stopConversation = operation(
  'channels.stopConversation',
  async (tx, { ref, atMs }: { readonly ref: string; readonly atMs: number }): Promise<StoppedConversation> => {
    const waiting = await tx.all(queued, { ref });
    for (const { id } of waiting) await cancelWork(tx, { id, errorKind: 'stopped', atMs });
    await endWaitingIn(tx, { ref, endedBy: 'killed', atMs });
    return { messages: waiting.length, roots: (await tx.all(activeRoots, { ref })).map(({ id }) => id) };
  },
);
