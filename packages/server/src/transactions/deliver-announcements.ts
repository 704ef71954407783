import { settleWithoutTurn } from './end-interrupted-turn.ts';
import { holdsWork } from '../features/unattended/durable/store.ts';
import { inboxDeliver } from '../features/unattended/inbox/store.ts';
import { addMessages, readConversation } from '../features/conversations/sessions/store.ts';
import type { News, Telling } from '../features/delegation/subagents/completion/announce.ts';
import { claimNews, markTold, type NewsClaim } from '../features/delegation/subagents/completion/announcement-store.ts';
import { AppError } from '../kernel/app-error.ts';
import { operation } from '../kernel/db/operation.ts';

/** What a conversation is to be told by a piece of work, and whether it is still there; asked when nothing else runs in it. */
export const takeNews = operation('subagents.takeNews', async (tx, input: NewsClaim): Promise<News> => {
  if (!(await holdsWork(tx, input.claim))) throw new AppError('conflict', 'The work is done by another process by now');
  return { exists: (await readConversation(tx, input.ref)) !== undefined, rows: await claimNews(tx, input) };
});

/** Tells of runs without a turn, with the end of the work that does it; false when the claim is another's. */
export const tellNews = operation('subagents.tellNews', async (tx, { claim, runIds, inbox, conversation, atMs }: Telling): Promise<boolean> => {
  if ((await settleWithoutTurn(tx, { ...claim, state: 'done', atMs })) === 'lost') return false;
  for (const message of inbox ?? []) await inboxDeliver(tx, message);
  if (conversation !== undefined) await addMessages(tx, conversation);
  await markTold(tx, { runIds, as: inbox === undefined ? 'turn' : 'inbox' });
  return true;
});
