import type { PartRow } from '../features/channels/delivery/api.ts';
import { type Due, finishSend, type LeftSends, markLeft, pruneParts, type SendEnd } from '../features/channels/delivery/store.ts';
import { keepOutcomes } from '../features/unattended/cron/occurrences/sends.ts';
import type { InboxMessage } from '../features/unattended/inbox/api.ts';
import { inboxDeliver } from '../features/unattended/inbox/store.ts';
import { derivedId } from '../kernel/ids.ts';
import { operation, type Tx } from '../kernel/db/operation.ts';

/** Stores what became of a send; returns the alert about one that failed, or may have. Nothing happens when another process sends it. */
export const finishChannelSend = operation('delivery.finish', async (tx, end: SendEnd): Promise<InboxMessage | undefined> => {
  const row = await finishSend(tx, end);
  if (row === undefined || (end.is !== 'unknown' && end.is !== 'rejected')) return undefined;
  return alert(tx, row, end.is, end.error ?? 'no reason was given', end.atMs);
});

/** Marks what an earlier process was sending; returns the alert about each. */
export const recoverChannelSends = operation('delivery.recover', async (tx, input: LeftSends): Promise<InboxMessage[]> => {
  const left = await markLeft(tx, input);
  const alerts: InboxMessage[] = [];
  for (const row of left) alerts.push(await alert(tx, row, 'unknown', 'the daemon ended before the platform confirmed it', input.atMs));
  return alerts;
});

async function alert(tx: Tx, row: PartRow, is: 'unknown' | 'rejected', why: string, atMs: number): Promise<InboxMessage> {
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
    text: `A message to ${conversationId} (${channelType}, "${instance}") ${what}: ${why}. Next step: \`gatehouse channels resend ${id}\` sends it again.`,
    atMs,
  };
  await inboxDeliver(tx, message);
  return message;
}

/** Deletes some ended parts, and stores with the runs of jobs what became of theirs; returns how many. */
export const pruneChannelSends = operation('delivery.prune', (tx, due: Due) => pruneParts(tx, due, (opKeys) => keepOutcomes(tx, opKeys)));

export const channelSendOperations = [finishChannelSend, recoverChannelSends, pruneChannelSends];
