import * as z from 'zod';

const maxPartLength = 256;
const KeyPart = z
  .string()
  .min(1)
  .max(maxPartLength)
  .refine((part) => part.isWellFormed(), 'expected well-formed Unicode');

/**
 * The readable address of a conversation as an object (json-rpc.md §4 `agent.execute`). A peer makes it a group
 * conversation, a thread a thread conversation, which determines the reset policy and the kind.
 */
export const SessionKeyObject = z
  .strictObject({ userId: KeyPart, channelId: KeyPart, peerId: KeyPart.optional(), threadId: KeyPart.optional() })
  .meta({ id: 'SessionKeyObject' });
export type SessionKeyObject = z.output<typeof SessionKeyObject>;

/** The same as text: `userId:channelId[:peerId[:threadId]]`, with `%` and `:` inside a part percent-encoded; a thread without a peer leaves that part empty. */
export const PrintedSessionKey = z
  .string()
  .min(3)
  .max(3200)
  .regex(/^[^:]+:[^:]+(?::[^:]+|:[^:]*:[^:]+)?$/, 'expected userId:channelId, userId:channelId:peerId or userId:channelId:peerId:threadId')
  .refine(isPrintable, `expected well-formed Unicode, at most ${maxPartLength} characters in each part`)
  .meta({ id: 'PrintedSessionKey' });

/** Rejects ill-formed Unicode, which is stored as U+FFFD and would merge different keys; each part must fit its object form. */
function isPrintable(key: string): boolean {
  return key.isWellFormed() && key.split(':').every((part) => part.replaceAll(/%3A|%25/gi, '%').length <= maxPartLength);
}

export const SessionKey = z.union([SessionKeyObject, PrintedSessionKey]).meta({ id: 'SessionKey' });

/** Opaque digest of a conversation's scope `{tenantId, agentId, partition}`. */
export const ConversationRef = z
  .string()
  .regex(/^cv_[A-Za-z0-9_-]{43}$/, 'expected cv_ followed by 43 characters of base64url')
  .meta({ id: 'ConversationRef' });

export const AgentId = z
  .string()
  .regex(
    /^[a-z0-9](?:[a-z0-9_-]{0,62}[a-z0-9])?$/,
    'expected 1 to 64 lower-case letters, digits, "-" or "_", starting and ending with a letter or digit',
  )
  .meta({ id: 'AgentId' });

/** The full scope of a conversation, whose digest is its reference (json-rpc.md §2.3). */
export const ConversationScope = z
  .strictObject({
    tenantId: z.string().min(1).max(64),
    agentId: AgentId,
    partition: z.strictObject({ kind: z.literal('principal-key'), principalId: z.string().min(1).max(256), sessionKey: PrintedSessionKey }),
  })
  .meta({ id: 'ConversationScope' });
export type ConversationScope = z.output<typeof ConversationScope>;

/** How a call names a conversation: by `conversationRef`, or by `sessionKey` in the partition of `agentId` (the default agent when absent). */
export const conversationAddress = {
  conversationRef: ConversationRef.optional(),
  sessionKey: SessionKey.optional(),
  agentId: AgentId.optional(),
};

/** Both forms of the address, contained in every result about a conversation. */
export const conversationIdentity = {
  conversationRef: ConversationRef,
  sessionKey: PrintedSessionKey,
  agentId: AgentId,
};

/** Routing identity of a chat destination (json-rpc.md §2.2). */
export const ChannelEndpoint = z
  .strictObject({
    channelType: z.string().min(1),
    channelInstanceId: z.string().min(1),
    conversationId: z.string().min(1),
    threadId: z.string().min(1).optional(),
    conversationKind: z.enum(['direct', 'shared']),
  })
  .meta({ id: 'ChannelEndpoint' });
