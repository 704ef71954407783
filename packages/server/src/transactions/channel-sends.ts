import type { PartRow } from '../features/channels/delivery/api.ts';
import { finishSend, markLeft, type SendEnd } from '../features/channels/delivery/store.ts';
import type { InboxMessage } from '../features/unattended/inbox/api.ts';
import { inboxDeliver } from '../features/unattended/inbox/store.ts';
import { derivedId } from '../kernel/ids.ts';
import { operation, type Tx } from '../kernel/db/operation.ts';

/** Stores what became of a send, with an alert when nobody knows; undefined when this process is not the one that sends it. */
export const finishChannelSend = operation('delivery.finish', async (tx, end: SendEnd): Promise<PartRow | undefined> => {
  const row = await finishSend(tx, end);
  if (row !== undefined && (end.is === 'unknown' || end.is === 'rejected'))
    await alert(tx, row, end.is, end.error ?? 'no reason was given', end.atMs);
  return row;
});

/** Marks what an earlier process was sending, with an alert for each; returns how many. */
export const recoverChannelSends = operation(
  'delivery.recover',
  async (tx, input: { readonly instance: string; readonly bootId: string; readonly atMs: number }): Promise<number> => {
    const left = await markLeft(tx, input);
    for (const row of left) await alert(tx, row, 'unknown', 'the daemon ended before the platform confirmed it', input.atMs);
    return left.length;
  },
);

async function alert(tx: Tx, row: PartRow, is: 'unknown' | 'rejected', why: string, atMs: number): Promise<void> {
  const { id, channelType, instance, conversationId, agentId, principalId, conversationRef, attempts } = row;
  const what = is === 'unknown' ? 'may have been sent' : 'was not sent';
  const message: InboxMessage = {
    id: derivedId('in', id, is, String(attempts)),
    opKey: `delivery:${id}:${is}:${attempts}`,
    digest: is,
    source: 'channel',
    agentId,
    conversationRef,
    principalId,
    level: 'alert',
    text: `A message to ${conversationId} (${channelType}, "${instance}") ${what}: ${why}. Next step: \`gatehouse call delivery.resend --deliveryId ${id}\` sends it again.`,
    atMs,
  };
  await inboxDeliver(tx, message);
}

export const channelSendOperations = [finishChannelSend, recoverChannelSends];
