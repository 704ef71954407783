import { operation, query } from '../../../../../kernel/db/operation.ts';
import type { MessageRow } from '../../api.ts';

const messageColumns = ['seq', 'turnId', 'role', 'content', 'toolJson', 'attachmentsJson', 'createdAtMs'] as const;

const ofTurn = query<{ conversationId: number; turnId: string }, MessageRow>(({ db, p }) =>
  db.selectFrom('message').select(messageColumns).where('conversationId', '=', p('conversationId')).where('turnId', '=', p('turnId')).orderBy('seq'),
);
const newest = query<{ conversationId: number }, { turnId: string }>(({ db, p }) =>
  db
    .selectFrom('message')
    .select('turnId')
    .where('conversationId', '=', p('conversationId'))
    .where('role', '=', 'assistant')
    .where('content', '<>', '')
    .orderBy('seq', 'desc')
    .limit(1),
);
/** Answers whose trace is looked for, from the newest. */
const tracedAnswers = 256;
const ofTrace = query<{ conversationId: number; traceId: string }, { turnId: string }>(({ db, p }) =>
  db
    .selectFrom(
      db
        .selectFrom('message')
        .select(['turnId', 'seq'])
        .where('conversationId', '=', p('conversationId'))
        .where('role', '=', 'assistant')
        .orderBy('seq', 'desc')
        .limit(tracedAnswers)
        .as('answer'),
    )
    .innerJoin('turn', 'turn.id', 'answer.turnId')
    .select('answer.turnId')
    .where('turn.traceId', '=', p('traceId'))
    .orderBy('answer.seq', 'desc')
    .limit(1),
);
const before = query<{ conversationId: number; seq: number; floor: number; limit: number }, MessageRow>(({ db, p }) =>
  db
    .selectFrom('message')
    .select(messageColumns)
    .where('conversationId', '=', p('conversationId'))
    .where('seq', '<', p('seq'))
    .where('seq', '>', p('floor'))
    .where('role', 'in', ['user', 'assistant'])
    .where('content', '<>', '')
    .orderBy('seq', 'desc')
    .limit(p('limit')),
);

/** Returns the messages of one turn of a conversation, oldest first; of the newest answered one when none is named. */
export const messagesOfTurn = operation(
  'sessions.messagesOfTurn',
  async (tx, { conversationId, turnId }: { readonly conversationId: number; readonly turnId?: string | undefined }): Promise<MessageRow[]> => {
    const id = turnId ?? (await tx.get(newest, { conversationId }))?.turnId;
    return id === undefined ? [] : tx.all(ofTurn, { conversationId, turnId: id });
  },
);

/** Returns the turn of a trace, among the newest answers of a conversation. */
export const turnOfTrace = operation(
  'sessions.turnOfTrace',
  async (tx, input: { readonly conversationId: number; readonly traceId: string }): Promise<string | undefined> =>
    (await tx.get(ofTrace, input))?.turnId,
);

/** Returns the last texts of people and agent before a message and after the last reset, oldest first. */
export const textsBefore = operation(
  'sessions.textsBefore',
  async (
    tx,
    input: { readonly conversationId: number; readonly seq: number; readonly floor: number; readonly limit: number },
  ): Promise<MessageRow[]> => (await tx.all(before, input)).toReversed(),
);

export const pastTurnOperations = [messagesOfTurn, turnOfTrace, textsBefore];
