import { deliverMessage, withdrawMessage } from './deliver-message.ts';
import { askForCall, type Asked, type Asking, removeRequest } from '../features/access/approvals/store.ts';
import { ownerQuestionKeyOf, questionKeyOf } from '../features/channels/approvals/store.ts';
import type { PartRow } from '../features/channels/delivery/api.ts';
import { addParts, withdrawParts } from '../features/channels/delivery/store.ts';
import type { InboxMessage } from '../features/unattended/inbox/api.ts';
import { operation } from '../kernel/db/operation.ts';

/** Stores a request for an approval with the messages that announce it, in the inbox and in chats, all or none. */
export const askApproval = operation(
  'approvals.ask',
  async (
    tx,
    { inbox, question, ...asking }: Asking & { readonly inbox?: InboxMessage | undefined; readonly question?: readonly PartRow[] | undefined },
  ): Promise<Asked> => {
    const asked = await askForCall(tx, asking);
    if (asked.kind !== 'waits' || !asked.isNew) return asked;
    if (inbox !== undefined) await deliverMessage(tx, inbox);
    if (question !== undefined) await addParts(tx, question);
    return asked;
  },
);

/** Withdraws a request of a turn that was stopped while it was written, with its messages, as if none had existed. */
export const withdrawApproval = operation(
  'approvals.withdraw',
  async (tx, { id, opKey }: { readonly id: string; readonly opKey: string }): Promise<void> => {
    if (!(await removeRequest(tx, { id }))) return;
    await withdrawMessage(tx, { opKey });
    for (const question of [questionKeyOf(id), ownerQuestionKeyOf(id)]) await withdrawParts(tx, { opKey: question });
  },
);
