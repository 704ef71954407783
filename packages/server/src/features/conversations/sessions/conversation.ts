import { hash } from 'node:crypto';
import type { SessionKeyObject } from '@gatehouse/contract';
import type * as z from 'zod';
import type { ConversationTarget } from './api.ts';

export type SessionKeyParts = z.output<typeof SessionKeyObject>;

/** The only tenant of an installation; part of every scope so that several can be added later. */
export const tenantId = 'default';

const encodePart = (part: string) => part.replaceAll('%', '%25').replaceAll(':', '%3A');
const decodePart = (part: string) => part.replaceAll(/%3A/gi, ':').replaceAll('%25', '%');

/** Prints `userId:channelId[:peerId[:threadId]]`; separators inside a part are percent-encoded, so no part can imitate another key. */
export function printSessionKey({ userId, channelId, peerId, threadId }: SessionKeyParts): string {
  const parts = [userId, channelId];
  if (peerId !== undefined || threadId !== undefined) parts.push(peerId ?? '');
  if (threadId !== undefined) parts.push(threadId);
  return parts.map(encodePart).join(':');
}

export function parseSessionKey(key: SessionKeyParts | string): SessionKeyParts {
  if (typeof key !== 'string') return key;
  const [userId = '', channelId = '', peerId = '', threadId = ''] = key.split(':').map(decodePart);
  return { userId, channelId, ...(peerId !== '' && { peerId }), ...(threadId !== '' && { threadId }) };
}

/** Returns the kind of chat of a printed key, by whether it has a thread or a peer. */
export function chatKindOf(sessionKey: string): 'dm' | 'group' | 'thread' {
  const parts = sessionKey.split(':').length;
  if (parts === 4) return 'thread';
  return parts === 3 ? 'group' : 'dm';
}

/**
 * Returns the digest of a conversation's scope (decisions §2). The partition belongs to the principal, so two tokens with
 * the same key have two conversations; fields are length-delimited, so none can spill into the next.
 */
export function conversationRef(agentId: string, principalId: string, key: SessionKeyParts): string {
  const fields = [
    'gatehouse conversation',
    '1',
    tenantId,
    agentId,
    key.threadId === undefined ? 'principal-key' : 'principal-thread-key',
    principalId,
    key.userId,
    key.channelId,
    ...(key.threadId === undefined ? [] : [key.threadId]),
    ...(key.peerId === undefined ? [] : [key.peerId]),
  ];
  return `cv_${hash('sha256', fields.map((field) => `${Buffer.byteLength(field)}:${field}`).join(''), 'base64url')}`;
}

/** Returns the conversation with a principal under a key. */
export function conversationTarget(agentId: string, principalId: string, key: SessionKeyParts): ConversationTarget {
  return { ref: conversationRef(agentId, principalId, key), sessionKey: printSessionKey(key), agentId, principalId };
}
