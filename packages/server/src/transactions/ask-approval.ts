import { askForCall, type Asked, type Asking, removeRequest } from '../features/access/approvals/store.ts';
import type { InboxMessage } from '../features/unattended/inbox/api.ts';
import { inboxDeliver, inboxRemove } from '../features/unattended/inbox/store.ts';
import { operation } from '../kernel/db/operation.ts';

/** Stores a request for an approval with the message that announces it, all or none. */
export const askApproval = operation(
  'approvals.ask',
  async (tx, { inbox, ...asking }: Asking & { readonly inbox?: InboxMessage | undefined }): Promise<Asked> => {
    const asked = await askForCall(tx, asking);
    if (inbox !== undefined && asked.kind === 'waits' && asked.isNew) await inboxDeliver(tx, inbox);
    return asked;
  },
);

/** Withdraws a request of a turn that was stopped while it was written, with its message, as if neither had existed. */
export const withdrawApproval = operation(
  'approvals.withdraw',
  async (tx, { id, opKey }: { readonly id: string; readonly opKey: string }): Promise<void> => {
    if (await removeRequest(tx, { id })) await inboxRemove(tx, { opKey });
  },
);
