import { addMessages } from './features/sessions/store.ts';
import { recordTurn, type TurnCommit } from './features/turns/store.ts';
import { operation } from './kernel/db/operation.ts';

/** The one transaction of a turn bound to a request: messages, usage, cost and terminal row, all or none (decisions §7). */
export const commitTurn = operation('turns.commit', async (tx, input: TurnCommit): Promise<{ readonly created: boolean }> => {
  await recordTurn(tx, input.turn, input.calls);
  return input.conversation === null ? { created: false } : addMessages(tx, input.conversation);
});
