import type { ResultInput } from '@gatehouse/contract';
import { headOf } from '../../../kernel/cut-text.ts';
import type { ListedMessage, PairingRow } from './store.ts';

const shownText = 2_000;

/** Returns a message as methods show it. */
export function shownMessage(row: ListedMessage): ResultInput<'channels.messages'>['messages'][number] {
  const { id, senderId, senderName, text, verdict, agentId, conversationRef, state, sentAtMs, receivedAtMs } = row;
  const { channelType, instance, conversationId, threadId, conversationKind } = row;
  return {
    messageId: id,
    endpoint: { channelType, channelInstanceId: instance, conversationId, ...(threadId !== null && { threadId }), conversationKind },
    senderId,
    senderName,
    text: headOf(text, shownText),
    verdict,
    agentId,
    conversationRef,
    state,
    sentAt: sentAtMs,
    receivedAt: receivedAtMs,
  };
}

/** Returns a pairing as methods show it. */
export function shownPairing(row: PairingRow): ResultInput<'channels.pair'> {
  const { id, channelType, instance, senderId, senderName, codeMac, person, principalId, requestedAtMs, expiresAtMs } = row;
  return {
    pairingId: id,
    channelType,
    channelInstanceId: instance,
    senderId,
    senderName,
    state: codeMac === null ? 'approved' : 'pending',
    person,
    principalId,
    requestedAt: requestedAtMs,
    expiresAt: expiresAtMs,
  };
}
