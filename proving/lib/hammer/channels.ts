import type { PartRow } from '../../../packages/server/src/features/channels/delivery/api.ts';
import { beginSend, decidePart, enqueueParts, pruneParts } from '../../../packages/server/src/features/channels/delivery/store.ts';
import {
  approvePairing,
  type MessageRow,
  type PairingRow,
  pruneMessages,
  removePairing,
} from '../../../packages/server/src/features/channels/messages/store.ts';
import { acceptChannelMessages } from '../../../packages/server/src/transactions/accept-channel-messages.ts';
import { finishChannelSend, recoverChannelSends } from '../../../packages/server/src/transactions/channel-sends.ts';
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
        const ids = valueOf(await writer.write(acceptChannelMessages, { messages: [message] })) ?? [];
        added += ids.length;
      }),
      async () => {
        const approval = {
          codeMac: names.id('mac', 'first'),
          person: 'ada',
          personPrincipalId: 'person:ada',
          audit: names.audit(`pair-${side}`),
          atMs,
        };
        if (valueOf(await writer.write(approvePairing, approval)) !== undefined) approved += 1;
      },
      () => writer.write(removePairing, { id: names.id('pr', 'nobody'), audit: names.audit(`unpair-${side}`) }, ['not_found']),
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
    await db.write(beginSend, { id: names.id('ob', 'dead-1'), bootId: 'boot-dead', atMs });
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
        if (valueOf(await writer.write(beginSend, { id, bootId, atMs })) === undefined) return;
        begun += 1;
        const end = valueOf(await writer.write(finishChannelSend, { id, bootId, is: index === 0 ? 'unknown' : 'accepted', atMs }));
        if (end !== undefined) finished += 1;
      }),
      async () => {
        const found = valueOf(
          await writer.write(recoverChannelSends, { instance: round, bootId: `${liveBoot}-never`, canResolve: false, atMs: atMs - 1 }),
        );
        left += found?.length ?? 0;
      },
      () => writer.write(pruneParts, { beforeMs: 0, limit: 3 }),
    ]);
    const decision = {
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

export const channelDrivers = [driver(intake), driver(outbox)];
