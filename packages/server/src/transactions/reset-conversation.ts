import { clearApprovals } from '../features/access/approvals/store.ts';
import { forgetParts, forgetPendingParts } from '../features/channels/delivery/store.ts';
import { forgetMessages } from '../features/channels/messages/store.ts';
import { dropTasks } from '../features/environment/background/store.ts';
import { dropContext } from '../features/conversations/context/store.ts';
import { dropReviewMark } from '../features/knowledge/memory/lifecycle/review/review-store.ts';
import { type Forgotten, forgetConversationMemories } from '../features/knowledge/memory/entries/store.ts';
import { forgetReceipts } from '../features/conversations/receipts/store.ts';
import type { Erasure, Erased, SessionReset } from '../features/conversations/sessions/api.ts';
import { eraseMessages, leaveBehind } from '../features/conversations/sessions/changes/reset-store.ts';
import { appendAudit } from '../kernel/db/audit.ts';
import { forgetTurnMessages } from '../features/conversations/turns/lanes/turn-message-store.ts';
import { operation } from '../kernel/db/operation.ts';

/** Removes what the model sees of a conversation, including summaries; its messages stay. All or none. */
export const resetSession = operation('sessions.reset', async (tx, input: SessionReset): Promise<number> => {
  const reset = await leaveBehind(tx, input.ref);
  if (reset === undefined) return 0;
  await dropContext(tx, { conversationId: reset.row.id });
  await dropTasks(tx, input.ref);
  await clearApprovals(tx, { conversationRef: input.ref });
  await forgetPendingParts(tx, { conversationRef: input.ref });
  if (input.audit !== undefined) await appendAudit(tx, input.audit);
  return reset.left;
});

/** Clears each named layer of a conversation, with the audit row, all or none; missing layers count as 0. */
export const resetConversation = operation('sessions.resetConversation', async (tx, input: Erasure): Promise<Erased> => {
  const found = await eraseMessages(tx, input.ref);
  const { summaries } = found === undefined ? { summaries: 0 } : await dropContext(tx, { conversationId: found.row.id });
  await clearApprovals(tx, { conversationRef: input.ref });
  await forgetReceipts(tx, input.ref);
  await dropReviewMark(tx, input.ref);
  await dropTasks(tx, input.ref);
  await forgetTurnMessages(tx, { conversationRef: input.ref });
  await forgetMessages(tx, { conversationRef: input.ref });
  await forgetParts(tx, { conversationRef: input.ref });
  const forgotten: Forgotten | undefined =
    input.memories === 'keep'
      ? undefined
      : await forgetConversationMemories(tx, { conversationRef: input.ref, purgeDerived: input.memories === 'purge' });
  await appendAudit(tx, input.audit);
  return { messages: found?.erased ?? 0, summaries, ...(forgotten !== undefined && { forgotten }) };
});
