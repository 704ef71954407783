import type { PartRow } from '../features/channels/delivery/api.ts';
import { addDelivered, addParts, removeDelivered } from '../features/channels/delivery/store.ts';
import type { InboxMessage } from '../features/unattended/inbox/api.ts';
import { inboxDeliver, inboxRemove } from '../features/unattended/inbox/store.ts';
import { headOf } from '../kernel/cut-text.ts';
import { operation, type Tx } from '../kernel/db/operation.ts';
import { derivedId, idBefore } from '../kernel/ids.ts';

/** Delivers a message to the inbox, or to the chat that it is addressed to, inside the transaction of the event that it reports; see `inboxDeliver`. */
export async function deliverMessage(tx: Tx, { parts, ...message }: InboxMessage): Promise<'accepted' | 'repeated' | 'mismatch'> {
  if (parts !== undefined) return (await addParts(tx, parts)) ? 'accepted' : 'repeated';
  const end = await inboxDeliver(tx, message);
  if (end === 'accepted') await addDelivered(tx, partOf(message));
  return end;
}

/** `deliverMessage` as an operation. */
export const deliverToInbox = operation('inbox.deliver', deliverMessage);

/** Removes an unannounced message, inside the transaction that reverts the event it reports. */
export async function withdrawMessage(tx: Tx, { opKey }: { readonly opKey: string }): Promise<void> {
  await inboxRemove(tx, { opKey });
  await removeDelivered(tx, { opKey: keyOf(opKey) });
}

/** Text that is kept of a delivery: the inbox has the whole message. */
const keptText = 2_000;
/** Keys of the inbox and of chats are not the same keys. */
const keyOf = (opKey: string): string => `gateway:${opKey}`;

/** Returns the row of a message of the inbox in the outbox of all channels: the commit of the message is what confirms it. */
function partOf({ id, opKey, digest, agentId, principalId, conversationRef, text, atMs }: InboxMessage): PartRow {
  return {
    // In the order of time, and the same at a second run of the transaction.
    id: `${idBefore('ob', atMs)}-${derivedId('ob', id).slice(17)}-01`,
    opKey: keyOf(opKey),
    part: 1,
    parts: 1,
    digest,
    instance: 'gateway',
    channelType: 'gateway',
    conversationId: 'inbox',
    threadId: null,
    conversationKind: 'direct',
    text: headOf(text, keptText),
    subject: null,
    replyTo: null,
    editsId: null,
    buttonsJson: null,
    fileJson: null,
    state: 'accepted',
    attempts: 1,
    repeats: 0,
    unsolicited: null,
    notBeforeMs: atMs,
    expiresAtMs: atMs,
    bootId: null,
    platformId: id,
    errorKind: null,
    error: null,
    agentId,
    principalId,
    conversationRef,
    turnId: null,
    createdAtMs: atMs,
    ambiguousSinceMs: null,
    begunAtMs: atMs,
    endedAtMs: atMs,
  };
}
