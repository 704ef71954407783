import { deliverMessage } from './deliver-message.ts';
import type { PartRow, SendFinish } from '../features/channels/delivery/api.ts';
import {
  beginSend,
  type ClaimedPart,
  type Due,
  endLateParts,
  finishSend,
  type LateParts,
  type LeftSends,
  markLeft,
  pruneParts,
  type SendBegin,
  type SendEnd,
} from '../features/channels/delivery/store.ts';
import { keepOutcomes } from '../features/unattended/cron/occurrences/sends.ts';
import type { InboxMessage } from '../features/unattended/inbox/api.ts';
import { derivedId } from '../kernel/ids.ts';
import { operation, type Tx } from '../kernel/db/operation.ts';

/** What became of a part that was to be sent: `ended` when it could not be sent any more. */
export type SendStart =
  | { readonly is: 'taken' }
  | { readonly is: 'begun'; readonly part: ClaimedPart }
  | { readonly is: 'ended'; readonly part: PartRow; readonly alert: InboxMessage | undefined };

/** Claims a part, before anything of it leaves; one that is too old, or for another platform, ends, which is reported. */
export const beginChannelSend = operation('delivery.begin', async (tx, input: SendBegin): Promise<SendStart> => {
  const row = await beginSend(tx, input);
  if (row === undefined) return { is: 'taken' };
  if (row.state === 'sending') return { is: 'begun', part: row };
  const report =
    row.state === 'expired'
      ? alertOfExpired(tx, row, input.atMs)
      : alert(tx, row, row.state === 'unknown' ? 'unknown' : 'rejected', row.error ?? '', input.atMs);
  return { is: 'ended', part: row, alert: await report };
});

/** Stores what became of a send; returns the alert about one that failed, or may have. Nothing happens when another process sends it. */
export const finishChannelSend = operation('delivery.finish', async (tx, end: SendEnd): Promise<SendFinish> => {
  const row = await finishSend(tx, end);
  if (row === undefined) return { state: undefined };
  const { state } = row;
  if (state === 'accepted') return { state };
  if (state !== 'rejected' && state !== 'unknown') return { state: 'pending' };
  return { state, alert: await alert(tx, row, state, end.error ?? 'no reason was given', end.atMs) };
});

/** Marks what an earlier process was sending; returns the alert about each. */
export const recoverChannelSends = operation('delivery.recover', async (tx, input: LeftSends): Promise<InboxMessage[]> => {
  const left = await markLeft(tx, input);
  const alerts: InboxMessage[] = [];
  for (const row of left) alerts.push(await alert(tx, row, 'unknown', 'the daemon ended before the platform confirmed it', input.atMs));
  return alerts;
});

async function alert(tx: Tx, row: PartRow, is: 'unknown' | 'rejected', why: string, atMs: number): Promise<InboxMessage> {
  const { id, channelType, instance, conversationId, agentId, principalId, conversationRef } = row;
  const what = is === 'unknown' ? 'may have been sent' : 'was not sent';
  const message: InboxMessage = {
    id: derivedId('in', id, is, String(atMs)),
    opKey: `delivery:${id}:${is}:${atMs}`,
    digest: is,
    source: 'channel',
    agentId,
    conversationRef,
    principalId,
    level: 'alert',
    text: `A message to ${conversationId} (${channelType}, "${instance}") ${what}: ${why}. Next step: \`gatehouse channels resend ${id}\` sends it again.`,
    atMs,
  };
  await deliverMessage(tx, message);
  return message;
}

/** After an outage many are too old at once: one alert a day reports those of an instance. */
async function alertOfExpired(tx: Tx, { channelType, instance, agentId, principalId }: PartRow, atMs: number): Promise<InboxMessage | undefined> {
  const day = String(Math.floor(atMs / dayMs));
  const message: InboxMessage = {
    id: derivedId('in', 'expired', instance, day),
    opKey: `delivery:${instance}:expired:${day}`,
    digest: 'expired',
    source: 'channel',
    agentId,
    conversationRef: null,
    principalId,
    level: 'alert',
    text: `Messages of the channel "${instance}" (${channelType}) could not be sent in time. Next step: \`gatehouse channels deliveries --state expired\` lists them, \`gatehouse channels resend ID\` sends one.`,
    atMs,
  };
  return (await deliverMessage(tx, message)) === 'accepted' ? message : undefined;
}

const dayMs = 24 * 60 * 60_000;

/** Ends messages that are too old although no channel has claimed them, with the alerts that a claim would have raised. */
export const expireChannelSends = operation(
  'delivery.expire',
  async (tx, input: LateParts): Promise<{ readonly parts: readonly PartRow[]; readonly alerts: readonly InboxMessage[] }> => {
    const parts = await endLateParts(tx, input);
    const alerts: InboxMessage[] = [];
    for (const row of parts) {
      const raised =
        row.state === 'expired' ? await alertOfExpired(tx, row, input.atMs) : await alert(tx, row, 'unknown', row.error ?? '', input.atMs);
      if (raised !== undefined) alerts.push(raised);
    }
    return { parts, alerts };
  },
);

/** Deletes some ended parts, and stores with the runs of jobs what became of theirs; returns how many. */
export const pruneChannelSends = operation('delivery.prune', (tx, due: Due) => pruneParts(tx, due, (opKeys) => keepOutcomes(tx, opKeys)));

export const channelSendOperations = [beginChannelSend, finishChannelSend, recoverChannelSends, expireChannelSends, pruneChannelSends];
