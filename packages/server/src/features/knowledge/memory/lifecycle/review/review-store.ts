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
  db.selectFrom('memoryReview').select(['conversationRef', 'reviewedToSeq', 'triedToSeq', 'failures']).where('agentId', '=', p('agentId')),
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
    .insertInto('memoryReview')
    .values({
      agentId: p('agentId'),
      conversationRef: p('conversationRef'),
      reviewedToSeq: p('toSeq'),
      triedToSeq: p('toSeq'),
      failures: 0,
      atMs: p('atMs'),
    })
    .onConflict((conflict) =>
      conflict.columns(['agentId', 'conversationRef']).doUpdateSet({
        reviewedToSeq: sql<number>`excluded.reviewed_to_seq`,
        triedToSeq: sql<number>`excluded.tried_to_seq`,
        failures: 0,
        atMs: sql<number>`excluded.at_ms`,
      }),
    ),
);

/** Advances the watermark of a conversation; part of the transaction that stores the results. */
export async function markReviewed(tx: Tx, row: MarkRow): Promise<void> {
  await tx.run(markDone, row);
}

const markFailed = query<MarkRow>(({ db, sql, p }) =>
  db
    .insertInto('memoryReview')
    .values({
      agentId: p('agentId'),
      conversationRef: p('conversationRef'),
      reviewedToSeq: 0,
      triedToSeq: p('toSeq'),
      failures: 1,
      atMs: p('atMs'),
    })
    .onConflict((conflict) =>
      conflict.columns(['agentId', 'conversationRef']).doUpdateSet({
        triedToSeq: sql<number>`excluded.tried_to_seq`,
        failures: sql<number>`memory_review.failures + 1`,
        atMs: sql<number>`excluded.at_ms`,
      }),
    ),
);

/** Books a failed review; the watermark stays. */
export async function markReviewFailed(tx: Tx, row: MarkRow): Promise<void> {
  await tx.run(markFailed, row);
}

const dropMark = query<{ conversationRef: string }>(({ db, p }) => db.deleteFrom('memoryReview').where('conversationRef', '=', p('conversationRef')));

/** Forgets the watermark, so that a cleared conversation starts at its first message again. Part of what deletes or clears it. */
export async function dropReviewMark(tx: Tx, conversationRef: string): Promise<void> {
  await tx.run(dropMark, { conversationRef });
}

const entryOf = query<{ id: string }, { conversationRef: string | null; proofCount: number }>(({ db, p }) =>
  db.selectFrom('memory').select(['conversationRef', 'proofCount']).where('id', '=', p('id')).forUpdate(),
);
const isCited = query<{ id: string; conversationRef: string }, { id: number }>(({ db, p }) =>
  db.selectFrom('memorySource').select('id').where('derivedId', '=', p('id')).where('conversationRef', '=', p('conversationRef')),
);
const cite = query<{ id: string; conversationRef: string }>(({ db, p }) =>
  db.insertInto('memorySource').values({ derivedId: p('id'), sourceId: null, conversationRef: p('conversationRef') }),
);
const prove = query<{ id: string; proofs: number }>(({ db, sql, p }) =>
  db
    .updateTable('memory')
    .set({ proofCount: sql<number>`proof_count + ${p('proofs')}`, confidence: sql<number | null>`1 - (1 - coalesce(confidence, 0.5)) / 2` })
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
