import { query, type Tx } from '../../../../../kernel/db/operation.ts';
import type { MemoryInput } from '../../entries/store.ts';

/** A conversation with new messages at the positions `fromSeq` to `toSeq`. */
export interface Reviewable {
  readonly conversationId: number;
  readonly conversationRef: string;
  readonly principalId: string;
  readonly sessionKey: string;
  readonly fromSeq: number;
  readonly toSeq: number;
}

export interface ReviewedMessage {
  readonly seq: number;
  readonly turnId: string;
  readonly role: 'user' | 'assistant' | 'tool';
  /** Its beginning, when it is very long. */
  readonly content: string;
}

/** New messages of a conversation, oldest first; the middle may be missing. */
export interface ReviewText {
  readonly messages: readonly ReviewedMessage[];
  /** Whether results of tools or attachments occur anywhere in the conversation. */
  readonly outside: boolean;
}

/** A review that failed. */
export interface ReviewFailure extends MarkRow {
  /** Turn of the message at `toSeq`: identifies the conversation after a reset. */
  readonly lastTurnId: string;
}

/** Results of a review. */
export interface KeptReview extends ReviewFailure {
  readonly memories: readonly MemoryInput[];
  /** Entries that the conversation repeated. */
  readonly seenAgain: readonly string[];
}

/** How far a conversation was reviewed. */
export interface ReviewMark {
  readonly conversationRef: string;
  readonly reviewedToSeq: number;
  /** Position that a failed review had reached. */
  readonly triedToSeq: number;
  readonly failures: number;
}

const marksOf = query<{ agentId: string }, ReviewMark>(({ db, p }) =>
  db
    .selectFrom('memory_review')
    .select(['conversation_ref as conversationRef', 'reviewed_to_seq as reviewedToSeq', 'tried_to_seq as triedToSeq', 'failures'])
    .where('agent_id', '=', p('agentId')),
);

export async function reviewMarks(tx: Tx, agentId: string): Promise<ReadonlyMap<string, ReviewMark>> {
  return new Map((await tx.all(marksOf, { agentId })).map((mark) => [mark.conversationRef, mark]));
}

interface MarkRow {
  readonly agentId: string;
  readonly conversationRef: string;
  readonly toSeq: number;
  readonly atMs: number;
}

const markDone = query<MarkRow>(({ db, sql, p }) =>
  db
    .insertInto('memory_review')
    .values({
      agent_id: p('agentId'),
      conversation_ref: p('conversationRef'),
      reviewed_to_seq: p('toSeq'),
      tried_to_seq: p('toSeq'),
      failures: 0,
      at_ms: p('atMs'),
    })
    .onConflict((conflict) =>
      conflict.columns(['agent_id', 'conversation_ref']).doUpdateSet({
        reviewed_to_seq: sql`excluded.reviewed_to_seq`,
        tried_to_seq: sql`excluded.tried_to_seq`,
        failures: 0,
        at_ms: sql`excluded.at_ms`,
      }),
    ),
);

/** Advances the watermark of a conversation; part of the transaction that stores the results. */
export async function markReviewed(tx: Tx, row: MarkRow): Promise<void> {
  await tx.run(markDone, row);
}

const markFailed = query<MarkRow>(({ db, sql, p }) =>
  db
    .insertInto('memory_review')
    .values({
      agent_id: p('agentId'),
      conversation_ref: p('conversationRef'),
      reviewed_to_seq: 0,
      tried_to_seq: p('toSeq'),
      failures: 1,
      at_ms: p('atMs'),
    })
    .onConflict((conflict) =>
      conflict.columns(['agent_id', 'conversation_ref']).doUpdateSet({
        tried_to_seq: sql`excluded.tried_to_seq`,
        failures: sql`memory_review.failures + 1`,
        at_ms: sql`excluded.at_ms`,
      }),
    ),
);

/** Books a failed review; the watermark stays. */
export async function markReviewFailed(tx: Tx, row: MarkRow): Promise<void> {
  await tx.run(markFailed, row);
}

const dropMark = query<{ conversationRef: string }>(({ db, p }) =>
  db.deleteFrom('memory_review').where('conversation_ref', '=', p('conversationRef')),
);

/** Forgets the watermark, so that a cleared conversation starts at its first message again. Part of what deletes or clears it. */
export async function dropReviewMark(tx: Tx, conversationRef: string): Promise<void> {
  await tx.run(dropMark, { conversationRef });
}

const entryOf = query<{ id: string }, { conversationRef: string | null; proofCount: number }>(({ db, p }) =>
  db.selectFrom('memory').select(['conversation_ref as conversationRef', 'proof_count as proofCount']).where('id', '=', p('id')),
);
const isCited = query<{ id: string; conversationRef: string }, { id: number }>(({ db, p }) =>
  db.selectFrom('memory_source').select('id').where('derived_id', '=', p('id')).where('conversation_ref', '=', p('conversationRef')),
);
const cite = query<{ id: string; conversationRef: string }>(({ db, p }) =>
  db.insertInto('memory_source').values({ derived_id: p('id'), source_id: null, conversation_ref: p('conversationRef') }),
);
const prove = query<{ id: string; proofs: number }>(({ db, sql, p }) =>
  db
    .updateTable('memory')
    .set({ proof_count: sql`proof_count + ${p('proofs')}`, confidence: sql`1 - (1 - coalesce(confidence, 0.5)) / 2` })
    .where('id', '=', p('id')),
);

/**
 * Adds a conversation to the sources of an entry; its own conversation becomes the first of them. An entry without a
 * conversation stays as it is: forgetting a conversation must not delete what somebody stored on purpose.
 */
export async function citeConversation(tx: Tx, { id, conversationRef }: { readonly id: string; readonly conversationRef: string }): Promise<void> {
  const entry = await tx.get(entryOf, { id });
  if (entry === undefined || (entry.conversationRef === null && entry.proofCount === 0)) return;
  if (entry.conversationRef === conversationRef || (await tx.get(isCited, { id, conversationRef })) !== undefined) return;
  const own = entry.proofCount === 0 ? entry.conversationRef : null;
  if (own !== null) await tx.run(cite, { id, conversationRef: own });
  await tx.run(cite, { id, conversationRef });
  await tx.run(prove, { id, proofs: own === null ? 1 : 2 });
}
