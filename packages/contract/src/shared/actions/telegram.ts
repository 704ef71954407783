import * as z from 'zod';
import type { PlatformActions } from '../platform-action.ts';

const ChatId = z
  .union([z.string().regex(/^-?\d{1,16}$/, 'expected the numeric id of a chat'), z.int()])
  .describe('The chat of the endpoint; that one when absent.')
  .optional();
const MessageId = z.union([z.string().regex(/^\d{1,16}$/, 'expected the id of a message'), z.int().min(1)]);
const UserId = z.union([z.string().regex(/^\d{1,16}$/, 'expected the numeric id of a user'), z.int().min(1)]);
const TopicId = z.union([z.string().regex(/^\d{1,16}$/, 'expected the id of a topic'), z.int().min(1)]);
const Id = z.string();
const yes = z.literal(true);
const TopicName = z.string().min(1).max(128);
const IconId = z.string().min(1).max(64).describe('Id of a custom emoji.');

const permissions = [
  'can_manage_chat',
  'can_delete_messages',
  'can_manage_video_chats',
  'can_restrict_members',
  'can_promote_members',
  'can_change_info',
  'can_invite_users',
  'can_pin_messages',
  'can_manage_topics',
] as const;

const onTopic = () => z.strictObject({ chat_id: ChatId, message_thread_id: TopicId });
const onMessage = () => z.strictObject({ chat_id: ChatId, message_id: MessageId });
const onChat = () => z.strictObject({ chat_id: ChatId });

/** Actions of `telegram.action`. */
export const telegramActions = {
  pin: {
    risk: 'mutate',
    summary: 'Pins a message, without a notification',
    params: onMessage,
    result: () => z.strictObject({ pinned: yes, chatId: Id, messageId: Id }),
  },
  unpin: {
    risk: 'mutate',
    summary: 'Unpins a message',
    params: onMessage,
    result: () => z.strictObject({ unpinned: yes, chatId: Id, messageId: Id }),
  },
  poll: {
    risk: 'mutate',
    summary: 'Sends a poll',
    params: () =>
      z.strictObject({
        chat_id: ChatId,
        question: z.string().min(1).max(300),
        options: z.array(z.string().min(1).max(100)).min(2).max(12),
      }),
    result: () => z.strictObject({ sent: yes, chatId: Id, messageId: Id, pollId: Id }),
  },
  sticker: {
    risk: 'mutate',
    summary: 'Sends a sticker that Telegram has',
    params: () => z.strictObject({ chat_id: ChatId, sticker_id: z.string().regex(/^[\w-]{1,256}$/, 'expected the file id of a sticker') }),
    result: () => z.strictObject({ sent: yes, chatId: Id, messageId: Id }),
  },
  chat_info: {
    risk: 'read',
    summary: 'Returns what the chat is',
    params: onChat,
    result: () =>
      z.strictObject({
        id: Id,
        type: z.string(),
        title: z.string().nullable(),
        username: z.string().nullable(),
        description: z.string().nullable(),
        isForum: z.boolean(),
      }),
  },
  member_count: {
    risk: 'read',
    summary: 'Returns the number of members',
    params: onChat,
    result: () => z.strictObject({ chatId: Id, count: z.int().min(0) }),
  },
  get_admins: {
    risk: 'read',
    summary: 'Lists the administrators',
    params: onChat,
    result: () =>
      z.strictObject({
        chatId: Id,
        admins: z.array(z.strictObject({ userId: Id, name: z.string(), username: z.string().nullable(), isBot: z.boolean(), status: z.string() })),
      }),
  },
  set_title: {
    risk: 'mutate',
    summary: 'Changes the title of the group',
    params: () => z.strictObject({ chat_id: ChatId, title: z.string().min(1).max(128) }),
    result: () => z.strictObject({ titleSet: yes, chatId: Id, title: z.string() }),
  },
  set_description: {
    risk: 'mutate',
    summary: 'Changes the description of the group; an empty one removes it',
    params: () => z.strictObject({ chat_id: ChatId, description: z.string().max(255) }),
    result: () => z.strictObject({ descriptionSet: yes, chatId: Id, description: z.string() }),
  },
  ban: {
    risk: 'destructive',
    summary: 'Removes a person from the group, who cannot come back until unbanned',
    params: () => z.strictObject({ chat_id: ChatId, user_id: UserId }),
    result: () => z.strictObject({ banned: yes, chatId: Id, userId: Id }),
  },
  unban: {
    risk: 'mutate',
    summary: 'Permits a banned person to join again; a member stays',
    params: () => z.strictObject({ chat_id: ChatId, user_id: UserId }),
    result: () => z.strictObject({ unbanned: yes, chatId: Id, userId: Id }),
  },
  promote: {
    risk: 'destructive',
    summary: 'Makes a person an administrator with these permissions alone; with all of them false, a member',
    params: () =>
      z.strictObject({
        chat_id: ChatId,
        user_id: UserId,
        rights: z.partialRecord(z.enum(permissions), z.boolean()).default({ can_manage_chat: true }),
      }),
    result: () => z.strictObject({ promoted: yes, chatId: Id, userId: Id }),
  },
  createForumTopic: {
    risk: 'mutate',
    summary: 'Creates a topic in a forum',
    params: () =>
      z.strictObject({
        chat_id: ChatId,
        name: TopicName,
        icon_color: z.int().min(0).max(0xff_ff_ff).optional().describe('RGB; Telegram permits six colours.'),
        icon_custom_emoji_id: IconId.optional(),
      }),
    result: () => z.strictObject({ created: yes, chatId: Id, threadId: Id, name: z.string() }),
  },
  editForumTopic: {
    risk: 'mutate',
    summary: 'Changes the name or the icon of a topic',
    params: () =>
      z.strictObject({ chat_id: ChatId, message_thread_id: TopicId, name: TopicName.optional(), icon_custom_emoji_id: IconId.optional() }),
    result: () => z.strictObject({ edited: yes, chatId: Id, threadId: Id }),
  },
  closeForumTopic: {
    risk: 'mutate',
    summary: 'Closes a topic: only administrators write in it then',
    params: onTopic,
    result: () => z.strictObject({ closed: yes, chatId: Id, threadId: Id }),
  },
  reopenForumTopic: {
    risk: 'mutate',
    summary: 'Opens a closed topic again',
    params: onTopic,
    result: () => z.strictObject({ reopened: yes, chatId: Id, threadId: Id }),
  },
  sendTyping: {
    risk: 'mutate',
    summary: 'Shows for five seconds that an answer is being written',
    params: onChat,
    result: () => z.strictObject({ typing: yes, chatId: Id }),
  },
} satisfies PlatformActions;
