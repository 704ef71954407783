import * as z from 'zod';
import type { Place, ReceivedAttachment, ReceivedMessage } from '../port.ts';
import type { ChannelKind } from './channel-kinds.ts';
import { Snowflake } from './snowflake.ts';

const User = z.object({
  id: Snowflake(),
  username: z.string(),
  global_name: z.string().nullish(),
  bot: z.boolean().optional(),
});
const Member = z.object({ nick: z.string().nullish() });

export const Attachment = z.object({
  id: Snowflake(),
  filename: z.string(),
  content_type: z.string().nullish(),
  size: z.int().min(0).optional(),
  waveform: z.string().nullish(),
  url: z.string().optional(),
});

/** A message, as the gateway and the history have it. */
export const Message = z.object({
  id: Snowflake(),
  channel_id: Snowflake(),
  guild_id: Snowflake().nullish(),
  author: User,
  member: Member.nullish(),
  content: z.string().default(''),
  timestamp: z.string(),
  edited_timestamp: z.string().nullish(),
  type: z.int().default(0),
  nonce: z.union([z.string(), z.number()]).nullish(),
  mentions: z.array(z.object({ id: Snowflake() })).default([]),
  attachments: z.array(Attachment).default([]),
  webhook_id: Snowflake().nullish(),
  referenced_message: z.object({ author: z.object({ id: Snowflake() }) }).nullish(),
});
export type Message = z.output<typeof Message>;

/** One or many messages that were deleted. */
export const Deleted = z.object({
  id: Snowflake().optional(),
  ids: z.array(Snowflake()).max(100).default([]),
  channel_id: Snowflake(),
  guild_id: Snowflake().nullish(),
});

/** A pressed button. */
export const Interaction = z.object({
  id: Snowflake(),
  token: z.string().regex(/^[\w.-]{1,512}$/),
  type: z.literal(3),
  channel_id: Snowflake(),
  guild_id: Snowflake().nullish(),
  user: User.nullish(),
  member: Member.extend({ user: User }).nullish(),
  message: z.object({ id: Snowflake() }),
  data: z.object({ custom_id: z.string().min(1).max(100) }),
});
export type Interaction = z.output<typeof Interaction>;

/** What a person writes: a message, and an answer to one. */
const written: ReadonlySet<number> = new Set([0, 19]);

/** Returns the conversation of a channel: a thread belongs to its parent. */
export const placeOf = (channelId: string, { parentId }: ChannelKind): Place =>
  parentId === undefined ? { conversationId: channelId } : { conversationId: parentId, threadId: channelId };

const chatOf = (channelId: string, kind: ChannelKind) => ({
  ...placeOf(channelId, kind),
  conversationKind: kind.isDirect ? ('direct' as const) : ('shared' as const),
});

/** Returns what somebody wrote; undefined for our own messages and for what is not for people. `isEdit`: a new version of it. */
export function messageOf(message: Message, kind: ChannelKind, us: string, isEdit = false): ReceivedMessage | undefined {
  const { id, author, member, channel_id: channelId } = message;
  if (author.id === us || !written.has(message.type)) return undefined;
  const mentionsUs = message.mentions.some((mentioned) => mentioned.id === us) || message.referenced_message?.author.id === us;
  const attachments = message.attachments.map((one) => attachmentOf(one, message));
  if (message.content === '' && attachments.length === 0 && !mentionsUs) return undefined;
  return {
    eventKey: isEdit ? `${id}:${message.edited_timestamp}` : id,
    messageId: id,
    ...chatOf(channelId, kind),
    senderId: author.id,
    senderName: member?.nick ?? author.global_name ?? author.username,
    isBot: author.bot === true || message.webhook_id != null,
    text: message.content.replace(new RegExp(`^<@!?${us}>\\s*`), ''),
    mentionsUs,
    sentAtMs: Date.parse(message.timestamp),
    ...(attachments.length > 0 && { attachments }),
    ...(isEdit && { edits: id }),
  };
}

function attachmentOf(
  { id, filename, content_type: mediaType, size, waveform }: z.output<typeof Attachment>,
  { id: messageId, channel_id }: Message,
) {
  return {
    ref: `${channel_id}/${messageId}/${id}`,
    name: filename,
    ...(mediaType != null && { mediaType }),
    ...(size !== undefined && { bytes: size }),
    ...(waveform != null && { isVoice: true }),
  } satisfies ReceivedAttachment;
}

/** Returns that a message was deleted; `author` is empty when it is not known. */
export const deletedOf = (id: string, channelId: string, kind: ChannelKind, author: string, nowMs: number): ReceivedMessage => ({
  eventKey: `${id}:deleted`,
  messageId: id,
  ...chatOf(channelId, kind),
  senderId: author,
  senderName: '',
  isBot: false,
  text: '',
  mentionsUs: false,
  sentAtMs: nowMs,
  edits: id,
  isDeleted: true,
});

/** Returns a pressed button as a message of the person who pressed it. */
export function pressOf({ id, channel_id: channelId, member, user, message, data }: Interaction, kind: ChannelKind, nowMs: number) {
  const person = member?.user ?? user;
  if (person == null) return undefined;
  return {
    eventKey: id,
    messageId: message.id,
    ...chatOf(channelId, kind),
    senderId: person.id,
    senderName: member?.nick ?? person.global_name ?? person.username,
    isBot: person.bot === true,
    text: data.custom_id,
    mentionsUs: true,
    sentAtMs: nowMs,
  } satisfies ReceivedMessage;
}
