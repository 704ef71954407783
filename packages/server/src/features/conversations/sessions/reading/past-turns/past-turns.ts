import { AppError } from '../../../../../kernel/app-error.ts';
import type { CallContext } from '../../../../../kernel/call-context.ts';
import type { Db } from '../../../../../kernel/db/db.ts';
import { decodeAttachments, decodeToolColumn } from '../../../../../runtime/stored-message.ts';
import type { MessageRow, PastTurn, SessionsApi } from '../../api.ts';
import type { ForkRequest } from '../../changes/changing.ts';
import type { ConversationRow } from '../../store.ts';
import { toFeedback } from './feedback.ts';
import { feedbackOfTurns, ratedAnswers } from './feedback-store.ts';
import { messagesOfTurn, textsBefore } from './past-turn-store.ts';
import { type Addressing, reachOf } from '../reach.ts';
import { shownContent } from '../view.ts';

/** Finds what was asked and answered in a turn of a stored conversation, to ask it again. */
export function createPastTurns(deps: {
  readonly db: Db;
  readonly addressing: Addressing;
  readonly fork: (request: ForkRequest, call: CallContext) => Promise<ConversationRow>;
}): Pick<SessionsApi, 'pastTurn' | 'forkBefore' | 'rated'> {
  const { db } = deps;

  async function find({ conversationRef, turnId }: { readonly conversationRef: string; readonly turnId: string }, call: CallContext) {
    const row = await deps.addressing.existing({ conversationRef }, call);
    const messages = await db.read(messagesOfTurn, { conversationId: row.id, turnId });
    const asked = messages.find(({ role }) => role === 'user');
    if (asked === undefined) throw new AppError('not_found', 'The conversation does not hold the question of this turn');
    return { row, messages, asked };
  }

  return {
    async pastTurn(turn, call) {
      const { row, messages, asked } = await find(turn, call);
      const floor = asked.seq > row.modelSeqFloor ? row.modelSeqFloor : 0;
      const before = await db.read(textsBefore, { conversationId: row.id, seq: asked.seq, floor, limit: turn.texts });
      const [feedback] = await db.read(feedbackOfTurns, { ref: row.ref, turnIds: [turn.turnId] });
      const answers = messages.filter(({ role }) => role === 'assistant');
      return {
        turnId: turn.turnId,
        conversationRef: row.ref,
        agentId: row.agentId,
        question: questionOf(asked),
        before: before.map((message) => ({ role: message.role === 'user' ? 'user' : 'assistant', content: shownContent(message) })),
        answer: answers
          .map(shownContent)
          .filter((text) => text !== '')
          .join('\n\n'),
        tools: answers.flatMap(({ toolJson }) => (decodeToolColumn(toolJson).toolCalls ?? []).map(({ name }) => name)),
        ...(feedback !== undefined && { feedback: toFeedback(feedback) }),
      };
    },

    async forkBefore({ agentId, ...turn }, call) {
      const { row, asked } = await find(turn, call);
      const made = await deps.fork({ source: row, toSeq: asked.seq - 1, agentId, synthetic: true }, call);
      const { ref, sessionKey, principalId } = made;
      return { target: { ref, sessionKey, agentId: made.agentId, principalId }, question: questionOf(asked) };
    },

    rated({ rating, agentId, limit }, call) {
      const { agentIds } = reachOf(call);
      const within = agentId === undefined ? agentIds : agentIds === null || agentIds.includes(agentId) ? [agentId] : [];
      return db.read(ratedAnswers, { rating: rating ?? null, agentIds: within, limit });
    },
  };
}

const questionOf = ({ content, attachmentsJson }: MessageRow): PastTurn['question'] => ({
  text: content,
  attachments: attachmentsJson === null ? [] : decodeAttachments(attachmentsJson),
});
