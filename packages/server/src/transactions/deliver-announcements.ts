import { deliverMessage } from './deliver-message.ts';
import { settleWithoutTurn } from './end-interrupted-turn.ts';
import { holdsWork } from '../features/unattended/durable/store.ts';
import { addMessages, holdsConversation } from '../features/conversations/sessions/store.ts';
import type { AnnouncementDelivery, RunAnnouncement } from '../features/delegation/subagents/completion/announce.ts';
import { type AnnouncementClaim, claimAnnouncements, markAnnounced } from '../features/delegation/subagents/completion/announcement-store.ts';
import { AppError } from '../kernel/app-error.ts';
import { operation } from '../kernel/db/operation.ts';

/** Claims what a work item announces to a conversation, and returns whether the conversation still exists; called when nothing else runs in it. */
export const takeAnnouncement = operation('subagents.takeAnnouncement', async (tx, input: AnnouncementClaim): Promise<RunAnnouncement> => {
  if (!(await holdsWork(tx, input.claim))) throw new AppError('conflict', 'Another process has taken over the work');
  return { exists: await holdsConversation(tx, input.ref), rows: await claimAnnouncements(tx, input) };
});

/** Announces runs without a turn, in the transaction that ends the work; false when another process holds the claim. */
export const deliverAnnouncement = operation('subagents.deliverAnnouncement', async (tx, delivery: AnnouncementDelivery): Promise<boolean> => {
  const { claim, runIds, inbox, conversation, atMs } = delivery;
  if ((await settleWithoutTurn(tx, { ...claim, state: 'done', atMs })) === 'lost') return false;
  for (const message of inbox ?? []) await deliverMessage(tx, message);
  if (conversation !== undefined) await addMessages(tx, conversation);
  await markAnnounced(tx, { runIds, as: conversation === undefined ? 'inbox' : 'turn' });
  return true;
});
