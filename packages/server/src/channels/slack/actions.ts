import type { slackActions } from '@gatehouse/contract';
import * as z from 'zod';
import type { Act, Place } from '../port.ts';
import { failureOf, type SlackClient } from './client.ts';

type Params = Readonly<Record<string, unknown>>;
type Values = Readonly<Record<string, unknown>>;

interface Call {
  readonly method: string;
  /** Arguments in addition to the channel. */
  readonly args: (params: Params) => Params;
  /** Whether the call acts on the channel of the endpoint. */
  readonly isOfChannel: boolean;
  /** Result, of the answer and the parameters. */
  readonly result: (data: Params, params: Params) => Values | undefined;
}

const Conversation = z.object({
  channel: z.object({
    id: z.string(),
    name: z.string().nullish(),
    is_private: z.boolean().nullish(),
    is_im: z.boolean().nullish(),
    is_archived: z.boolean().nullish(),
    topic: z.object({ value: z.string() }).nullish(),
    purpose: z.object({ value: z.string() }).nullish(),
    num_members: z.number().nullish(),
  }),
});
const Members = z.object({
  members: z.array(z.string()),
  response_metadata: z.object({ next_cursor: z.string().nullish() }).nullish(),
});
const Bookmark = z.object({ bookmark: z.object({ id: z.string() }) });

const none = () => ({});
const onChannel = (method: string, flag: string, args: Call['args'] = none, result: (params: Params) => Values = none): Call => ({
  method,
  args,
  isOfChannel: true,
  result: (_data, params) => ({ [flag]: true, ...result(params) }),
});

const calls: Readonly<Record<Exclude<keyof typeof slackActions, 'sendTyping'>, Call>> = {
  pin: onChannel('pins.add', 'pinned', timestampOf, messageIdOf),
  unpin: onChannel('pins.remove', 'unpinned', timestampOf, messageIdOf),
  set_topic: onChannel(
    'conversations.setTopic',
    'topicSet',
    ({ topic }) => ({ topic }),
    ({ topic }) => ({ topic }),
  ),
  set_purpose: onChannel(
    'conversations.setPurpose',
    'purposeSet',
    ({ purpose }) => ({ purpose }),
    ({ purpose }) => ({ purpose }),
  ),
  archive: onChannel('conversations.archive', 'archived'),
  unarchive: onChannel('conversations.unarchive', 'unarchived'),
  create_channel: {
    method: 'conversations.create',
    args: ({ name, is_private: isPrivate }) => ({ name, ...(isPrivate === true && { is_private: true }) }),
    isOfChannel: false,
    result: (data) => {
      const made = Conversation.safeParse(data);
      return made.success ? { created: true, channelId: made.data.channel.id, name: made.data.channel.name ?? '' } : undefined;
    },
  },
  invite: onChannel(
    'conversations.invite',
    'invited',
    ({ user_ids: users }) => ({ users: Array.isArray(users) ? users.join(',') : '' }),
    ({ user_ids: users }) => ({ userIds: users }),
  ),
  kick: onChannel(
    'conversations.kick',
    'kicked',
    ({ user_id: user }) => ({ user }),
    ({ user_id: user }) => ({ userId: user }),
  ),
  channel_info: {
    method: 'conversations.info',
    args: () => ({ include_num_members: true }),
    isOfChannel: true,
    result: (data) => {
      const found = Conversation.safeParse(data);
      if (!found.success) return undefined;
      const { name, is_private: isPrivate, is_im: isDirect, is_archived: isArchived, topic, purpose, num_members: members } = found.data.channel;
      return {
        name: name ?? null,
        isPrivate: isPrivate === true || isDirect === true,
        isArchived: isArchived === true,
        topic: topic?.value ?? '',
        purpose: purpose?.value ?? '',
        memberCount: members ?? null,
      };
    },
  },
  members_list: {
    method: 'conversations.members',
    args: ({ limit }) => ({ limit }),
    isOfChannel: true,
    result: (data) => {
      const found = Members.safeParse(data);
      return found.success ? { members: found.data.members, hasMore: (found.data.response_metadata?.next_cursor ?? '') !== '' } : undefined;
    },
  },
  bookmark_add: {
    ...onChannel('bookmarks.add', 'bookmarked'),
    args: ({ title, link }) => ({ title, link, type: 'link' }),
    result: (data) => {
      const made = Bookmark.safeParse(data);
      return made.success ? { bookmarked: true, bookmarkId: made.data.bookmark.id } : undefined;
    },
  },
};

/** Carries out an action of `slack.action`, on the conversation of the endpoint alone. */
export async function runAction(
  client: SlackClient,
  name: string,
  params: Params,
  { conversationId }: Place,
  signal: AbortSignal,
): Promise<Act<Values>> {
  if (name === 'sendTyping') return { is: 'done', value: { typing: false } };
  if (!isAction(name)) return { is: 'failed', kind: 'invalid', text: `Unsupported action: ${name} on slack` };
  const { channel_id: channelId = conversationId } = params;
  if (channelId !== conversationId) return { is: 'failed', kind: 'invalid', text: 'channel_id is not the conversation of the endpoint' };
  const { method, args, isOfChannel, result } = calls[name];
  const channel = name === 'bookmark_add' ? { channel_id: conversationId } : { channel: conversationId };
  const answer = await client.call(method, { ...(isOfChannel && channel), ...args(params) }, signal);
  if (answer.is !== 'ok') return failureOf(answer);
  const value = result(answer.data, params);
  if (value === undefined) return { is: 'failed', kind: 'ambiguous', text: 'The answer of Slack is not complete' };
  return { is: 'done', value: { ...(isOfChannel && { channelId: conversationId }), ...value } };
}

const isAction = (name: string): name is keyof typeof calls => Object.hasOwn(calls, name);

function timestampOf({ message_id: timestamp }: Params): Params {
  return { timestamp };
}

function messageIdOf({ message_id: messageId }: Params): Values {
  return { messageId };
}
