import * as z from 'zod';
import type { PlatformActions } from '../platform-action.ts';

const id = z.string().regex(/^[A-Z][A-Z0-9]{1,31}$/, 'expected an id of Slack, such as C0123456789');
const messageId = z.string().regex(/^\d{1,12}\.\d{6}$/, 'expected the id of a message, such as 1700000000.000100');
const channelId = id.optional().describe('The conversation of the endpoint, which is the default.');
const inChannel = () => z.strictObject({ channel_id: channelId });
const onMessage = () => z.strictObject({ channel_id: channelId, message_id: messageId });

/** Actions of `slack.action`. */
export const slackActions = {
  pin: {
    risk: 'mutate',
    summary: 'Pins a message.',
    params: onMessage,
    result: () => z.strictObject({ pinned: z.literal(true), channelId: id, messageId }),
  },
  unpin: {
    risk: 'mutate',
    summary: 'Unpins a message.',
    params: onMessage,
    result: () => z.strictObject({ unpinned: z.literal(true), channelId: id, messageId }),
  },
  set_topic: {
    risk: 'mutate',
    summary: 'Sets the topic of a channel.',
    params: () => z.strictObject({ channel_id: channelId, topic: z.string().max(250) }),
    result: () => z.strictObject({ topicSet: z.literal(true), channelId: id, topic: z.string() }),
  },
  set_purpose: {
    risk: 'mutate',
    summary: 'Sets the description of a channel.',
    params: () => z.strictObject({ channel_id: channelId, purpose: z.string().max(250) }),
    result: () => z.strictObject({ purposeSet: z.literal(true), channelId: id, purpose: z.string() }),
  },
  archive: {
    risk: 'destructive',
    summary: 'Archives a channel: nobody can write there any more.',
    params: inChannel,
    result: () => z.strictObject({ archived: z.literal(true), channelId: id }),
  },
  unarchive: {
    risk: 'mutate',
    summary: 'Unarchives a channel.',
    params: inChannel,
    result: () => z.strictObject({ unarchived: z.literal(true), channelId: id }),
  },
  create_channel: {
    risk: 'destructive',
    summary: 'Creates a channel, which can only be archived afterwards.',
    params: () =>
      z.strictObject({
        name: z.string().regex(/^[\p{Ll}\p{Lo}\p{N}_-]{1,80}$/u, 'expected up to 80 lower-case letters, digits, "-" or "_"'),
        is_private: z.boolean().optional(),
      }),
    result: () => z.strictObject({ created: z.literal(true), channelId: id, name: z.string() }),
  },
  invite: {
    risk: 'mutate',
    summary: 'Adds people to a channel.',
    params: () => z.strictObject({ channel_id: channelId, user_ids: z.array(id).min(1).max(100) }),
    result: () => z.strictObject({ invited: z.literal(true), channelId: id, userIds: z.array(id) }),
  },
  kick: {
    risk: 'destructive',
    summary: 'Removes somebody from a channel.',
    params: () => z.strictObject({ channel_id: channelId, user_id: id }),
    result: () => z.strictObject({ kicked: z.literal(true), channelId: id, userId: id }),
  },
  channel_info: {
    risk: 'read',
    summary: 'Returns name, topic and description of a conversation.',
    params: inChannel,
    result: () =>
      z.strictObject({
        channelId: id,
        name: z.string().nullable(),
        isPrivate: z.boolean(),
        isArchived: z.boolean(),
        topic: z.string(),
        purpose: z.string(),
        memberCount: z.int().min(0).nullable(),
      }),
  },
  members_list: {
    risk: 'read',
    summary: 'Returns the ids of the members of a conversation.',
    params: () => z.strictObject({ channel_id: channelId, limit: z.int().min(1).max(1_000).default(100) }),
    result: () => z.strictObject({ channelId: id, members: z.array(z.string()), hasMore: z.boolean() }),
  },
  bookmark_add: {
    risk: 'mutate',
    summary: 'Adds a link to the bookmarks of a channel.',
    params: () => z.strictObject({ channel_id: channelId, title: z.string().min(1).max(255), link: z.url({ protocol: /^https?$/ }).max(2_048) }),
    result: () => z.strictObject({ bookmarked: z.literal(true), channelId: id, bookmarkId: z.string() }),
  },
  sendTyping: {
    risk: 'mutate',
    summary: 'Slack shows no typing of apps: answers `typing: false` and does nothing.',
    params: inChannel,
    result: () => z.strictObject({ typing: z.literal(false) }),
  },
} satisfies PlatformActions;
