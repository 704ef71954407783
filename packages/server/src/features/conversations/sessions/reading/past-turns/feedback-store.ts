import { AppError } from '../../../../../kernel/app-error.ts';
import { appendAudit, type AuditRow } from '../../../../../kernel/db/audit.ts';
import { operation, query } from '../../../../../kernel/db/operation.ts';
import type { FeedbackRow } from '../../api.ts';
import { lockConversation } from '../../store.ts';

const answerOf = query<{ conversationId: number; turnId: string }, { seq: number | null }>(({ db, p }) =>
  db
    .selectFrom('message')
    .select(({ fn }) => fn.max<number | null>('seq').as('seq'))
    .where('conversationId', '=', p('conversationId'))
    .where('turnId', '=', p('turnId'))
    .where('role', '=', 'assistant'),
);
const upsert = query<FeedbackRow & { conversationId: number }>(({ db, sql, each }) =>
  db
    .insertInto('messageFeedback')
    .values(each(['conversationId', 'turnId', 'seq', 'rating', 'note', 'principalId', 'atMs']))
    .onConflict((conflict) =>
      conflict.columns(['conversationId', 'turnId']).doUpdateSet({
        seq: sql<number>`excluded.seq`,
        rating: sql<FeedbackRow['rating']>`excluded.rating`,
        note: sql<string | null>`excluded.note`,
        principalId: sql<string>`excluded.principal_id`,
        atMs: sql<number>`excluded.at_ms`,
      }),
    ),
);
const remove = query<{ conversationId: number; turnId: string }>(({ db, p }) =>
  db.deleteFrom('messageFeedback').where('conversationId', '=', p('conversationId')).where('turnId', '=', p('turnId')),
);

/** Stores what a person thinks of an answer, replacing an earlier mark; a rating of null removes it. Returns the position of the answer. */
export const keepFeedback = operation(
  'sessions.keepFeedback',
  async (
    tx,
    {
      ref,
      audit,
      rating,
      ...row
    }: Omit<FeedbackRow, 'seq' | 'rating'> & { readonly ref: string; readonly rating: FeedbackRow['rating'] | null; readonly audit: AuditRow },
  ): Promise<number> => {
    const conversation = await lockConversation(tx, ref);
    const seq = conversation === undefined ? null : (await tx.get(answerOf, { conversationId: conversation.id, turnId: row.turnId }))?.seq;
    if (conversation === undefined || seq == null)
      throw new AppError('not_found', 'The conversation has no answer of this turn', { param: 'turnId' });
    if (rating === null) await tx.run(remove, { conversationId: conversation.id, turnId: row.turnId });
    else await tx.run(upsert, { ...row, rating, seq, conversationId: conversation.id });
    await appendAudit(tx, audit);
    return seq;
  },
);

const columns = ['turnId', 'seq', 'rating', 'note', 'messageFeedback.principalId', 'atMs'] as const;
const between = query<{ conversationId: number; from: number; to: number }, FeedbackRow>(({ db, p }) =>
  db
    .selectFrom('messageFeedback')
    .select(columns)
    .where('conversationId', '=', p('conversationId'))
    .where('seq', '>=', p('from'))
    .where('seq', '<=', p('to')),
);

/** Returns the feedback on the messages of a page. */
export const feedbackBetween = operation(
  'sessions.feedbackBetween',
  async (tx, input: { readonly conversationId: number; readonly from: number; readonly to: number }): Promise<FeedbackRow[]> =>
    tx.all(between, input),
);

const ofTurns = (ids: readonly string[]) => [...new Set(ids)];

/** Returns the feedback on turns of a conversation. */
export const feedbackOfTurns = operation(
  'sessions.feedbackOfTurns',
  async (tx, { ref, turnIds }: { readonly ref: string; readonly turnIds: readonly string[] }): Promise<FeedbackRow[]> =>
    turnIds.length === 0
      ? []
      : tx.build<FeedbackRow>((db) =>
          db
            .selectFrom('messageFeedback')
            .innerJoin('conversation', 'conversation.id', 'messageFeedback.conversationId')
            .select(columns)
            .where('conversation.ref', '=', ref)
            .where('turnId', 'in', ofTurns(turnIds)),
        ),
);

/** An answer that a person marked. */
export interface RatedAnswer {
  readonly conversationRef: string;
  readonly turnId: string;
}

/** Returns answers that people marked, newest first. */
export const ratedAnswers = operation(
  'sessions.ratedAnswers',
  async (
    tx,
    {
      rating,
      agentIds,
      limit,
    }: { readonly rating: FeedbackRow['rating'] | null; readonly agentIds: readonly string[] | null; readonly limit: number },
  ): Promise<RatedAnswer[]> =>
    tx.build<RatedAnswer>((db) => {
      let from = db.selectFrom('messageFeedback').innerJoin('conversation', 'conversation.id', 'messageFeedback.conversationId');
      if (rating !== null) from = from.where('rating', '=', rating);
      if (agentIds !== null) from = from.where('conversation.agentId', 'in', agentIds);
      return from.select(['conversation.ref as conversationRef', 'turnId']).orderBy('atMs', 'desc').limit(limit);
    }),
);

export const feedbackOperations = [keepFeedback, feedbackBetween, feedbackOfTurns, ratedAnswers];
