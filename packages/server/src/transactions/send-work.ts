import { deliverMessage } from './deliver-message.ts';
import type { WorkClaim } from '../features/unattended/durable/api.ts';
import { settleWithoutTurn } from './end-interrupted-turn.ts';
import { acceptWork, cancelWork, findWork } from '../features/unattended/durable/store.ts';
import type { InboxMessage } from '../features/unattended/inbox/api.ts';
import type { SendIntake, SendProgress } from '../features/delegation/session-send/api.ts';
import { answerKey, sendKind } from '../features/delegation/session-send/work-key.ts';
import { addSend, advanceSend, closeSend, endSendsOf, type SendFailure } from '../features/delegation/session-send/store.ts';
import { holdsConversation } from '../features/conversations/sessions/store.ts';
import { abandonTurn, findDurableTurn } from '../features/conversations/turns/durable/ledger-store.ts';
import { AppError } from '../kernel/app-error.ts';
import { operation, type Tx } from '../kernel/db/operation.ts';

/** Stores a message to another conversation with the work that delivers it: what the response of `session.send` promises. */
export const acceptSend = operation('sessionSend.accept', async (tx, { send, work, isStarting, ageNowMs }: SendIntake): Promise<void> => {
  // Deleted since it was looked up: a turn would recreate it.
  if (!isStarting && !(await holdsConversation(tx, send.toRef))) throw new AppError('not_found', 'Conversation not found');
  await addSend(tx, send, ageNowMs);
  await acceptWork(tx, work);
});

/** Stores an answer with what follows from it: the next work item, or the end and the inbox message. Called in the transaction of its turn. */
export const keepAnswer = operation('sessionSend.keepAnswer', async (tx, { next, inbox, ...answer }: SendProgress): Promise<void> => {
  const state = next !== undefined ? 'open' : answer.errorKind === null ? 'done' : 'failed';
  if (!(await advanceSend(tx, { ...answer, state, announced: inbox !== undefined }))) return;
  if (next !== undefined) await acceptWork(tx, next);
  if (inbox !== undefined) await deliverMessage(tx, inbox);
});

/** Ends a message without an answer, with its work and the notice to its sender; false when another process holds the claim and continues it. */
export const failSendWork = operation(
  'sessionSend.failWork',
  async (tx, { claim, inbox, ...failure }: SendFailure & { readonly claim: WorkClaim; readonly inbox?: InboxMessage }): Promise<boolean> => {
    const { errorKind, atMs } = failure;
    if ((await settleWithoutTurn(tx, { ...claim, state: 'failed', errorKind, atMs })) === 'lost' || !(await closeSend(tx, failure))) return false;
    if (inbox !== undefined) await deliverMessage(tx, inbox);
    return true;
  },
);

/** Drops messages to a conversation that is deleted: a turn would recreate the conversation. */
export async function dropSends(tx: Tx, about: { readonly ref: string; readonly atMs: number }): Promise<void> {
  for (const { id, leg } of await endSendsOf(tx, about)) {
    const work = await findWork(tx, { kind: sendKind, key: answerKey(id, leg) });
    if (work === undefined) continue;
    await cancelWork(tx, { id: work.id, errorKind: 'deleted', atMs: about.atMs });
    const left = await findDurableTurn(tx, work.id);
    if (left !== undefined) await abandonTurn(tx, { turnId: left.turnId, atMs: about.atMs });
  }
}
