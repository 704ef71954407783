import type { PartRow } from '../../../packages/server/src/features/channels/delivery/api.ts';
import { decidePart, dropEdit, enqueueParts } from '../../../packages/server/src/features/channels/delivery/store.ts';
import {
  approvePairing,
  type MessageRow,
  type PairingRow,
  pruneMessages,
  removePairing,
  saveFiles,
  savePreview,
} from '../../../packages/server/src/features/channels/messages/store.ts';
import type { NotificationRow } from '../../../packages/server/src/features/channels/notifications/api.ts';
import { quietHold, releaseHeld } from '../../../packages/server/src/features/channels/delivery/held.ts';
import { endNotification } from '../../../packages/server/src/features/channels/notifications/store.ts';
import type { MessageOperation } from '../../../packages/server/src/features/channels/outgoing/api.ts';
import { beginAct, endAct } from '../../../packages/server/src/features/channels/outgoing/store.ts';
import { questionKeyOf } from '../../../packages/server/src/features/channels/approvals/store.ts';
import { acceptChannelMessages, retryChannelMessage } from '../../../packages/server/src/transactions/accept-channel-messages.ts';
import {
  beginChannelSend,
  finishChannelSend,
  expireChannelSends,
  pruneChannelSends,
  recoverChannelSends,
} from '../../../packages/server/src/transactions/channel-sends.ts';
import { confirmApproval } from '../../../packages/server/src/transactions/confirm-approval.ts';
import { stopConversation } from '../../../packages/server/src/transactions/stop-conversation.ts';
import { sendMessage } from '../../../packages/server/src/transactions/send-message.ts';
import { sendNotification } from '../../../packages/server/src/transactions/send-notification.ts';
import { agentId, atMs, differs, driver, type Driver, liveBoot, type Names, namesOf, principalId, quote, valueOf } from './driver.ts';

interface Round {
  readonly round: string;
}

const place = (names: Names) => ({
  instance: names.round,
  channelType: 'irc',
  conversationId: 'ada',
  threadId: null,
  conversationKind: 'direct' as const,
});

const messageOf = (names: Names, index: number | string, eventKey: string): MessageRow => ({
  ...place(names),
  id: names.id('cm', index),
  eventKey,
  senderId: 'account:ada',
  senderName: 'ada',
  text: 'hello',
  platformId: null,
  subject: null,
  attachmentsJson: null,
  isForwarded: 0,
  isBot: 0,
  verdict: 'turn',
  agentId,
  conversationRef: null,
  sentAtMs: atMs,
  receivedAtMs: atMs,
});

const pairingOf = (names: Names, index: number | string): PairingRow => ({
  id: names.id('pr', index),
  instance: names.round,
  channelType: 'irc',
  senderId: 'account:ada',
  senderName: 'ada',
  conversationId: 'ada',
  codeMac: names.id('mac', index),
  person: null,
  principalId: null,
  requestedAtMs: atMs,
  expiresAtMs: atMs + 60_000,
});

const partOf = (names: Names, index: number | string, part = 1): PartRow => ({
  ...place(names),
  id: names.id('ob', `${index}-${part}`),
  opKey: names.id('op', index),
  part,
  parts: 2,
  digest: '',
  text: 'hello',
  subject: null,
  replyTo: null,
  editsId: null,
  buttonsJson: null,
  fileJson: null,
  ambiguousSinceMs: null,
  begunAtMs: null,
  state: 'pending',
  attempts: 0,
  repeats: 0,
  unsolicited: null,
  notBeforeMs: atMs,
  expiresAtMs: atMs + 60_000,
  bootId: null,
  platformId: null,
  errorKind: null,
  error: null,
  agentId,
  principalId,
  conversationRef: null,
  turnId: null,
  createdAtMs: atMs,
  endedAtMs: null,
});

/** Messages that both processes receive, and the request of one sender, which one of them approves. */
const intake: Driver<Round, { readonly approved: number; readonly added: number }> = {
  name: 'messages of channels',
  async prepare(db, names) {
    await db.write(acceptChannelMessages, {
      messages: [{ row: { ...messageOf(names, 'first', 'first'), verdict: 'pairing' }, pairing: pairingOf(names, 'first') }],
    });
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    let added = 0;
    let approved = 0;
    await writer.race([
      ...[0, 1, 2].map((index) => async () => {
        const row = messageOf(names, `${index}-${side}`, `event-${index}`);
        const work = {
          id: names.id('wi', `${index}-${side}`),
          kind: 'hammer-channel',
          key: row.id,
          digest: '',
          agentId,
          payload: {},
          fits: true,
          atMs,
        };
        const message = { row, work, reply: [partOf(names, `reply-${index}`)] };
        const ids = valueOf(await writer.write(acceptChannelMessages, { messages: [message] }))?.added ?? [];
        added += ids.length;
      }),
      async () => {
        const approval = {
          instances: null,
          codeMac: names.id('mac', 'first'),
          person: 'ada',
          personPrincipalId: 'person:ada',
          audit: names.audit(`pair-${side}`),
          atMs,
        };
        if (valueOf(await writer.write(approvePairing, approval)) !== undefined) approved += 1;
      },
      () => writer.write(removePairing, { id: names.id('pr', 'nobody'), instances: null, audit: names.audit(`unpair-${side}`) }, ['not_found']),
      () => writer.write(pruneMessages, { beforeMs: 0, limit: 3 }),
    ]);
    return { approved, added };
  },
  async check(look, { round }, results) {
    const of = `instance = ${quote(round)}`;
    const [messages] = await look(`select count(*) as count from channel_message where ${of}`);
    const [pairings] = await look(`select count(*) as count from channel_pairing where ${of} and principal_id = 'person:ada'`);
    const [replies] = await look(`select count(*) as count from outbound_message where ${of} and op_key like '%reply%'`);
    const [works] = await look(`select count(*) as count from work_item where kind = 'hammer-channel' and work_key like ${quote(`%${round}%`)}`);
    return [
      ...differs('messages of four events', messages?.['count'], 4),
      ...differs('messages that were new', results[0].added + results[1].added, 3),
      ...differs('work of three messages', works?.['count'], 3),
      ...differs('replies to three messages', replies?.['count'], 3),
      ...differs('approved pairings', pairings?.['count'], 1),
      ...differs('approvals', results[0].approved + results[1].approved, 1),
    ];
  },
};

/** Parts that both processes want to send: each is sent by one of them, and what the dead one was sending is decided by one. */
const outbox: Driver<Round, { readonly begun: number; readonly finished: number; readonly left: number }> = {
  name: 'messages to channels',
  async prepare(db, names) {
    await db.write(enqueueParts, { parts: [partOf(names, 'dead'), partOf(names, 'dead', 2)] });
    await db.write(beginChannelSend, { id: names.id('ob', 'dead-1'), channelType: 'irc', bootId: 'boot-dead', atMs, ageNowMs: atMs });
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    let begun = 0;
    let finished = 0;
    let left = 0;
    await writer.race([
      ...[0, 1, 2].map((index) => async () => {
        await writer.write(enqueueParts, { parts: [partOf(names, index), partOf(names, index, 2)] });
        const id = names.id('ob', `${index}-1`);
        const bootId = `${liveBoot}-${side}`;
        if (valueOf(await writer.write(beginChannelSend, { id, channelType: 'irc', bootId, atMs, ageNowMs: atMs }))?.is !== 'begun') return;
        begun += 1;
        const end = valueOf(await writer.write(finishChannelSend, { id, bootId, is: index === 0 ? 'unknown' : 'accepted', atMs }));
        if (end?.state !== undefined) finished += 1;
        await writer.write(dropEdit, { id, bootId });
      }),
      async () => {
        const found = valueOf(
          await writer.write(recoverChannelSends, {
            instance: round,
            canResolve: false,
            canEdit: true,
            repeatUnknown: false,
            atMs: atMs - 1,
          }),
        );
        left += found?.length ?? 0;
      },
      () => writer.write(expireChannelSends, { ageNowMs: 0, atMs, limit: 3 }),
      () => writer.write(pruneChannelSends, { beforeMs: 0, limit: 3 }),
    ]);
    const decision = {
      agentIds: null,
      id: names.id('ob', 'dead-1'),
      as: 'accepted' as const,
      expiresAtMs: atMs + 60_000,
      audit: names.audit(`decide-${side}`),
      atMs,
    };
    await writer.write(decidePart, decision, ['precondition_failed']);
    return { begun, finished, left };
  },
  async check(look, { round }, results) {
    const of = `instance = ${quote(round)}`;
    const state = async (where: string) => (await look(`select count(*) as count from outbound_message where ${of} and ${where}`))[0]?.['count'];
    const [audits] = await look(`select count(*) as count from audit where id like ${quote(`au_${round}-decide-%`)}`);
    return [
      ...differs('parts', await state('1 = 1'), 8),
      ...differs('begun sends', results[0].begun + results[1].begun, 3),
      ...differs('parts that are being sent', await state(`state = 'sending'`), 0),
      ...differs('decided part', await state(`id = ${quote(`ob_${round}-dead-1`)} and state = 'accepted'`), 1),
      ...differs('its second part', await state(`id = ${quote(`ob_${round}-dead-2`)} and state = 'pending'`), 1),
      ...differs('decisions', audits?.['count'], 1),
    ];
  },
};

/** Operations that both processes carry out under the same identities, and notifications of one agent within its limit. */
const outgoing: Driver<Round, { readonly sent: number; readonly ended: number; readonly admitted: number; readonly released: number }> = {
  name: 'messages of programs',
  async prepare(db, names) {
    await db.write(sendNotification, { ...limits, row: notificationOf(names, 'held'), parts: [heldPart(names)] });
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const counts = { sent: 0, ended: 0, admitted: 0, released: 0 };
    await writer.race([
      ...[0, 1].map((index) => async () => {
        const operation = operationOf(names, `send-${index}`, 'queued');
        const begun = valueOf(await writer.write(sendMessage, { operation, parts: [partOf(names, `send-${index}`)] }));
        if (begun?.is === 'new') counts.sent += 1;
        const other = { operation: { ...operation, digest: 'other' }, parts: [partOf(names, `other-${index}-${side}`)] };
        if (valueOf(await writer.write(sendMessage, other))?.is !== 'conflict') writer.wrong('other content was taken for a repeat');
      }),
      async () => {
        await writer.write(beginAct, operationOf(names, 'act', 'started'));
        const end = { id: names.id('mo', 'act'), is: 'done' as const, alongside: [], atMs };
        if (valueOf(await writer.write(endAct, end)) === true) counts.ended += 1;
      },
      ...[0, 1, 2].map((index) => async () => {
        const row = notificationOf(names, `${index}-${side}`);
        const admission = valueOf(await writer.write(sendNotification, { ...limits, row, parts: [partOf(names, `notice-${index}-${side}`)] }));
        if (admission !== 'accepted') return;
        counts.admitted += 1;
        await writer.write(endNotification, { id: row.id, state: 'delivered', atMs });
      }),
      async () => {
        const released = valueOf(await writer.write(releaseHeld, { decisions: [{ message: heldPart(names), is: 'sent' }], atMs }));
        counts.released += released?.length ?? 0;
      },
    ]);
    return counts;
  },
  async check(look, { round }, [first, second]) {
    const of = `instance = ${quote(round)}`;
    const count = async (from: string) => (await look(`select count(*) as count from ${from}`))[0]?.['count'];
    return [
      ...differs('operations that were new', first.sent + second.sent, 2),
      ...differs('their messages', await count(`outbound_message where ${of} and op_key like '%send-%'`), 2),
      ...differs('messages of other content', await count(`outbound_message where ${of} and op_key like '%other-%'`), 0),
      ...differs('ended acts', first.ended + second.ended, 1),
      ...differs('admitted notifications', first.admitted + second.admitted, limits.maxPerHour - 1),
      ...differs('notifications', await count(`channel_notification where ${of}`), limits.maxPerHour),
      ...differs('their messages', await count(`outbound_message where ${of} and op_key like '%notice-%'`), limits.maxPerHour - 1),
      ...differs('releases', first.released + second.released, 1),
      ...differs('released messages', await count(`outbound_message where ${of} and op_key like '%held' and state = 'pending'`), 1),
    ];
  },
};

/** The held one is one of them. */
const limits = { maxPerHour: 4, dedupeWindowMs: 0 };

const operationOf = (names: Names, index: string, state: MessageOperation['state']): MessageOperation => ({
  id: names.id('mo', index),
  method: 'message.send',
  digest: 'content',
  rootRunId: null,
  agentId,
  state,
  bootId: liveBoot,
  atMs,
});

const heldPart = (names: Names): PartRow => ({ ...partOf(names, 'held'), state: 'held', errorKind: quietHold, unsolicited: 'notification' });

const notificationOf = (names: Names, index: string): NotificationRow => ({
  id: names.id('nt', index),
  agentId: names.id('agent'),
  principalId,
  instance: names.round,
  channelType: 'irc',
  conversationId: 'ada',
  digest: index,
  priority: 'normal',
  opKey: names.id('op', index === 'held' ? index : `notice-${index}`),
  entryId: names.id('ob', index),
  state: 'open',
  createdAtMs: atMs,
});

/** What belongs to a message, and an approval that both processes confirm: one of them starts the turn of the message. */
const belongings: Driver<Round, { readonly begun: number }> = {
  name: 'belongings of messages of channels',
  async prepare(db, names) {
    await db.write(acceptChannelMessages, { messages: [{ row: { ...messageOf(names, 'kept', 'kept'), verdict: 'suspended' } }] });
    const question = partOf(names, 'question');
    await db.write(enqueueParts, { parts: [{ ...question, opKey: questionKeyOf(names.id('ap', 'asked')) }] });
    await db.write(beginChannelSend, { id: question.id, channelType: 'irc', bootId: liveBoot, atMs, ageNowMs: atMs });
    return { round: names.round };
  },
  async run(writer, { round }, side) {
    const names = namesOf(round);
    const row = messageOf(names, 'kept', 'kept');
    let begun = 0;
    await writer.race([
      async () => {
        const work = { id: names.id('wi', side), kind: 'hammer-retry', key: row.id, digest: '', agentId, payload: {}, fits: true, atMs };
        const end = await writer.write(retryChannelMessage, { row, work, audit: names.audit(`retry-${side}`) }, ['precondition_failed']);
        if ('value' in end) begun += 1;
      },
      () => writer.write(saveFiles, { id: row.id, filesJson: '{}' }),
      () => writer.write(savePreview, { id: row.id, previewId: 'm1' }),
      () => writer.write(confirmApproval, { questionKey: questionKeyOf(names.id('ap', 'asked')), parts: [partOf(names, 'confirmed')] }),
      () => writer.write(stopConversation, { ref: names.id('cv', 'other'), atMs }),
    ]);
    return { begun };
  },
  async check(look, { round }, results) {
    const of = `instance = ${quote(round)}`;
    const [kept] = await look(
      `select count(*) as count from channel_message where ${of} and verdict = 'turn' and files_json = '{}' and preview_id = 'm1'`,
    );
    const [works] = await look(`select count(*) as count from work_item where kind = 'hammer-retry' and work_key like ${quote(`%${round}%`)}`);
    const [confirmed] = await look(`select count(*) as count from outbound_message where ${of} and op_key like '%confirmed%'`);
    return [
      ...differs('begun turns', results[0].begun + results[1].begun, 1),
      ...differs('their work', works?.['count'], 1),
      ...differs('messages with what belongs to them', kept?.['count'], 1),
      ...differs('confirmations', confirmed?.['count'], 1),
    ];
  },
};

export const channelDrivers = [driver(intake), driver(outbox), driver(outgoing), driver(belongings)];
