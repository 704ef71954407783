import { digestOf } from '../../../channels/sender-principal.ts';
import type { Destination } from '../delivery/api.ts';

/** Returns the principal of a group, to which its conversation belongs. */
export function principalOfGroup({ instance, conversationId }: Pick<Destination, 'instance' | 'conversationId'>): string {
  return `channel:${digestOf('group', instance, conversationId)}`;
}

const plain = /^[\x20-\x7e]{1,128}$/;
const shownOf = (text: string): string =>
  plain.test(text)
    ? text
    : `${text
        .toWellFormed()
        .replaceAll(/[^\x20-\x7e]/g, '_')
        .slice(0, 96)}~${digestOf('key', text)}`;

/** Returns the parts of the session key of a conversation: a direct one has no peer. */
export function sessionKeyOf({ instance, channelType, conversationId, threadId, conversationKind }: Destination, principalId: string) {
  return {
    userId: principalId,
    channelId: `${channelType}.${instance}`,
    ...(conversationKind === 'shared' && { peerId: shownOf(conversationId) }),
    ...(threadId !== null && { threadId: shownOf(threadId) }),
  };
}
