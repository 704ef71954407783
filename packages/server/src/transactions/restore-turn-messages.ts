import type { ConversationTarget } from '../features/conversations/sessions/api.ts';
import { addMessages } from '../features/conversations/sessions/store.ts';
import { leftTurnMessages, removeTurnMessages } from '../features/conversations/turns/lanes/turn-message-store.ts';
import type { Tx } from '../kernel/db/operation.ts';

/** Stores the messages of turns that died with their process as messages of their conversations. Part of `abortOpenTurns`. */
export async function restoreTurnMessages(tx: Tx, atMs: number): Promise<void> {
  const turns = Map.groupBy(await leftTurnMessages(tx), ({ turnId }) => turnId);
  for (const [turnId, [first, ...more]] of turns) {
    if (first === undefined) continue;
    const target: ConversationTarget = {
      ref: first.conversationRef,
      sessionKey: first.sessionKey,
      agentId: first.agentId,
      principalId: first.principalId,
    };
    const messages = [first, ...more].map(({ text, atMs: createdAtMs }) => ({
      role: 'user' as const,
      content: text,
      toolJson: null,
      attachmentsJson: null,
      createdAtMs,
    }));
    await addMessages(tx, { ...target, turnId, steps: 0, toolCalls: 0, inputTokens: 0, outputTokens: 0, costNano: 0, messages, atMs });
    await removeTurnMessages(tx, turnId);
  }
}
