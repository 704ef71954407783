import { addParts } from '../features/channels/delivery/store.ts';
import type { InboxMessage } from '../features/unattended/inbox/api.ts';
import { inboxDeliver } from '../features/unattended/inbox/store.ts';
import type { Tx } from '../kernel/db/operation.ts';

/** Delivers a message to the inbox, or to the chat that it is addressed to, inside the transaction of the event that it reports; see `inboxDeliver`. */
export async function deliverMessage(tx: Tx, { parts, ...message }: InboxMessage): Promise<'accepted' | 'repeated' | 'mismatch'> {
  if (parts === undefined) return inboxDeliver(tx, message);
  return (await addParts(tx, parts)) ? 'accepted' : 'repeated';
}
