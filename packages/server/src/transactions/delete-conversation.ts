import { dropApprovals } from '../features/access/approvals/store.ts';
import { forgetParts } from '../features/channels/delivery/store.ts';
import { forgetMessages } from '../features/channels/messages/store.ts';
import { dropTasks } from '../features/environment/background/store.ts';
import { dropReviewMark } from '../features/knowledge/memory/lifecycle/review/review-store.ts';
import { endWaitingIn } from '../features/unattended/durable/store.ts';
import { forgetReceipts } from '../features/conversations/receipts/store.ts';
import { type Archival, archiveConversation, type ConversationRow } from '../features/conversations/sessions/store.ts';
import { forgetTurnMessages } from '../features/conversations/turns/lanes/turn-message-store.ts';
import { operation } from '../kernel/db/operation.ts';
import { dropSends } from './send-work.ts';

/** Archives and removes a conversation, with an audit row and the answers that idempotency keys would still return, all or none. */
export const deleteConversation = operation('sessions.delete', async (tx, input: Archival): Promise<ConversationRow> => {
  const conversation = await archiveConversation(tx, input);
  await dropApprovals(tx, { conversationRef: conversation.ref });
  await forgetReceipts(tx, conversation.ref);
  await dropReviewMark(tx, conversation.ref);
  await dropTasks(tx, conversation.ref);
  await endWaitingIn(tx, { ref: conversation.ref, endedBy: 'deleted', atMs: input.atMs });
  await forgetTurnMessages(tx, { conversationRef: conversation.ref });
  await forgetMessages(tx, { conversationRef: conversation.ref });
  await forgetParts(tx, { conversationRef: conversation.ref });
  await dropSends(tx, { ref: conversation.ref, atMs: input.atMs });
  return conversation;
});
