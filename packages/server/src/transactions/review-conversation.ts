import { conversationsOf, holdsOutsideText, isStillThere, readReviewed } from '../features/conversations/sessions/reading/review-store.ts';
import {
  citeConversation,
  type KeptReview,
  markReviewed,
  markReviewFailed,
  type Reviewable,
  type ReviewFailure,
  reviewMarks,
  type ReviewText,
} from '../features/knowledge/memory/lifecycle/review/review-store.ts';
import { insertMemory } from '../features/knowledge/memory/entries/store.ts';
import { operation } from '../kernel/db/operation.ts';

/** After this many failed reviews a conversation is skipped until it grows. */
const maxFailures = 3;

/** Returns an agent's conversations with at least `minMessages` new messages: the fewest failures first, then the longest inactive one. */
export const findReviewable = operation(
  'memory.findReviewable',
  async (tx, input: { readonly agentId: string; readonly minMessages: number; readonly limit: number }): Promise<Reviewable[]> => {
    const marks = await reviewMarks(tx, input.agentId);
    const due: (Reviewable & { readonly failures: number })[] = [];
    for (const { id, ref, principalId, sessionKey, lastSeq } of await conversationsOf(tx, { agentId: input.agentId, minSeq: input.minMessages })) {
      const mark = marks.get(ref);
      const fromSeq = (mark?.reviewedToSeq ?? 0) + 1;
      const failures = mark?.failures ?? 0;
      if (lastSeq - fromSeq + 1 < input.minMessages) continue;
      if (mark !== undefined && failures >= maxFailures && lastSeq - mark.triedToSeq < input.minMessages) continue;
      due.push({ conversationId: id, conversationRef: ref, principalId, sessionKey, fromSeq, toSeq: lastSeq, failures });
    }
    return due.toSorted((a, b) => a.failures - b.failures).slice(0, input.limit);
  },
);

/** Returns the new messages of a conversation: all of up to twice `ends`, else that many from either end; and whether any is untrusted. */
export const readReviewable = operation(
  'memory.readReviewable',
  async (
    tx,
    { conversationId, fromSeq, toSeq, ends }: Pick<Reviewable, 'conversationId' | 'fromSeq' | 'toSeq'> & { readonly ends: number },
  ): Promise<ReviewText> => {
    const messages =
      toSeq - fromSeq < ends * 2
        ? await readReviewed(tx, { conversationId, from: fromSeq, to: toSeq })
        : [
            ...(await readReviewed(tx, { conversationId, from: fromSeq, to: fromSeq + ends - 1 })),
            ...(await readReviewed(tx, { conversationId, from: toSeq - ends + 1, to: toSeq })),
          ];
    return { messages, outside: await holdsOutsideText(tx, conversationId) };
  },
);

/**
 * Stores what a review found and its watermark, all or none. Returns false, with nothing stored, when the conversation was cleared or
 * deleted meanwhile: forgotten text must not return through its review.
 */
export const keepReview = operation('memory.keepReview', async (tx, input: KeptReview): Promise<boolean> => {
  if (!(await isStillThere(tx, { ref: input.conversationRef, seq: input.toSeq, turnId: input.lastTurnId }))) return false;
  for (const memory of input.memories) await insertMemory(tx, memory);
  for (const id of input.seenAgain) await citeConversation(tx, { id, conversationRef: input.conversationRef });
  await markReviewed(tx, input);
  return true;
});

export const failReview = operation('memory.failReview', async (tx, input: ReviewFailure): Promise<void> => {
  if (await isStillThere(tx, { ref: input.conversationRef, seq: input.toSeq, turnId: input.lastTurnId })) await markReviewFailed(tx, input);
});
