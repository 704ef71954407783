import { query, type Tx } from '../../../../kernel/db/operation.ts';
import { tenantId } from '../conversation.ts';

/** A conversation as seen by a review of its contents. */
export interface ReviewedConversation {
  readonly id: number;
  readonly ref: string;
  readonly principalId: string;
  readonly sessionKey: string;
  readonly lastSeq: number;
}

const ofAgent = query<{ agentId: string; minSeq: number }, ReviewedConversation>(({ db, p }) =>
  db
    .selectFrom('conversation')
    .select(['id', 'ref', 'principalId', 'sessionKey', 'lastSeq'])
    .where('tenantId', '=', tenantId)
    .where('agentId', '=', p('agentId'))
    .where('lastSeq', '>=', p('minSeq'))
    .where('synthetic', '=', 0)
    .orderBy('updatedAtMs')
    .orderBy('id'),
);

/** Returns the conversations of an agent with at least `minSeq` messages, longest idle first. */
export async function conversationsOf(tx: Tx, input: { readonly agentId: string; readonly minSeq: number }): Promise<ReviewedConversation[]> {
  return tx.all(ofAgent, input);
}

export interface ReviewedMessage {
  readonly seq: number;
  readonly turnId: string;
  readonly role: 'user' | 'assistant' | 'tool';
  /** The content, truncated when it is very long. */
  readonly content: string;
}

/** Maximum characters of one message; the review truncates further. */
const maxCharacters = 20_000;

const messagesBetween = query<{ conversationId: number; from: number; to: number }, ReviewedMessage>(({ db, sql, p }) =>
  db
    .selectFrom('message')
    .select(['seq', 'turnId', 'role', sql<string>`substr(content, 1, ${sql.lit(maxCharacters)})`.as('content')])
    .where('conversationId', '=', p('conversationId'))
    .where('seq', '>=', p('from'))
    .where('seq', '<=', p('to'))
    .orderBy('seq'),
);

/** Returns the messages at the positions `from` to `to`, oldest first. */
export async function readReviewed(
  tx: Tx,
  input: { readonly conversationId: number; readonly from: number; readonly to: number },
): Promise<ReviewedMessage[]> {
  return tx.all(messagesBetween, input);
}

const taintOf = query<{ conversationId: number }, { taint: number }>(({ db, p }) =>
  db.selectFrom('conversation').select('taint').where('id', '=', p('conversationId')),
);

/** Returns whether turns of a conversation ever read untrusted text, which later messages may repeat. */
export async function holdsOutsideText(tx: Tx, conversationId: number): Promise<boolean> {
  return (await tx.get(taintOf, { conversationId }))?.taint !== 0;
}

const turnAt = query<{ ref: string; seq: number }, { turnId: string }>(({ db, p }) =>
  db
    .selectFrom('message')
    .innerJoin('conversation', 'conversation.id', 'message.conversationId')
    .select('message.turnId')
    .where('conversation.ref', '=', p('ref'))
    .where('message.seq', '=', p('seq'))
    .forShare('conversation'),
);

/** Returns whether the message at a position still belongs to that turn; false once the conversation was cleared or deleted. */
export async function isStillThere(tx: Tx, input: { readonly ref: string; readonly seq: number; readonly turnId: string }): Promise<boolean> {
  return (await tx.get(turnAt, { ref: input.ref, seq: input.seq }))?.turnId === input.turnId;
}
