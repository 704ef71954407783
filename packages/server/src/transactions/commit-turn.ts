import { markTasks } from '../features/environment/background/store.ts';
import { inboxDeliver } from '../features/unattended/inbox/store.ts';
import { keepReceipt } from '../features/conversations/receipts/store.ts';
import { keepResponse } from '../features/conversations/responses/store.ts';
import { addMessages } from '../features/conversations/sessions/store.ts';
import type { AlongsideRows } from '../features/conversations/turns/api.ts';
import { recordTurn, type TurnCommit, type TurnOpening } from '../features/conversations/turns/store.ts';
import { endRun } from './end-run.ts';
import { markAnnounced } from '../features/delegation/subagents/completion/announcement-store.ts';
import type { EndedRun } from '../features/delegation/subagents/run/row.ts';
import { operation, type Tx } from '../kernel/db/operation.ts';
import { keepSend } from './send-work.ts';

/** Writes the row before the first tool of class `once`, so that a crash leaves a trace (decisions §7). */
export const openTurn = operation('turns.open', async (tx, input: TurnOpening): Promise<void> => {
  await recordTurn(tx, input.turn, [], null);
  await keepAlongside(tx, input.alongside);
});

/** The only transaction of a turn bound to a request: messages, usage, cost, terminal row and its caller's rows, all or none (decisions §7). */
export const commitTurn = operation('turns.commit', async (tx, input: TurnCommit): Promise<{ readonly created: boolean }> => {
  await recordTurn(tx, input.turn, input.calls, input.conversation === null ? null : input.turn.conversationRef);
  await keepAlongside(tx, input.alongside);
  return input.conversation === null ? { created: false } : addMessages(tx, input.conversation);
});

/** Stores the rows of a turn's caller; returns the run that it ended. */
export async function keepAlongside(tx: Tx, rows: AlongsideRows | undefined): Promise<EndedRun | undefined> {
  if (rows?.response !== undefined) await keepResponse(tx, rows.response);
  if (rows?.receipt !== undefined) await keepReceipt(tx, rows.receipt);
  if (rows?.tasks !== undefined) await markTasks(tx, rows.tasks);
  if (rows?.announced !== undefined) await markAnnounced(tx, rows.announced);
  if (rows?.send !== undefined) await keepSend(tx, rows.send);
  for (const message of rows?.inbox ?? []) await inboxDeliver(tx, message);
  return rows?.runEnd === undefined ? undefined : endRun(tx, rows.runEnd);
}
