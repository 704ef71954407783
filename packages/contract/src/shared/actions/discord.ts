import * as z from 'zod';
import { once } from '../../once.ts';
import type { PlatformAction, PlatformActions } from '../platform-action.ts';

const Id = once(() => z.string().regex(/^\d{17,20}$/, 'expected an id of Discord: 17 to 20 digits'));
/** Absent: the channel or thread of the endpoint. */
const channel = () => ({ channel_id: Id().optional().describe('Must be the channel or thread of the endpoint, which is also the default.') });
const guild = () => ({ guild_id: Id().describe('Must be the guild of the endpoint.') });
/** A channel of the guild of the endpoint. */
const guildChannel = () => ({ channel_id: Id().describe('A channel in the guild of the endpoint.') });
const reason = () => ({ reason: z.string().min(1).max(512).optional().describe('For the audit log of the guild.') });
const member = () => ({ ...guild(), user_id: Id() });
const Name = once(() => z.string().min(1).max(100));
const Topic = once(() => z.string().max(1_024));
const is = z.literal(true);

interface Row<Params extends z.ZodRawShape, Result extends z.ZodRawShape> {
  readonly risk: PlatformAction['risk'];
  readonly summary: string;
  readonly params: () => Params;
  readonly result: () => Result;
}

const row = <Params extends z.ZodRawShape, Result extends z.ZodRawShape>({ risk, summary, params, result }: Row<Params, Result>) => ({
  risk,
  summary,
  params: once(() => z.strictObject(params())),
  result: once(() => z.strictObject(result())),
});

const ChannelInfo = once(() =>
  z.strictObject({
    id: Id(),
    type: z.int(),
    name: z.string().nullable(),
    topic: z.string().nullable(),
    guildId: Id().nullable(),
    parentId: Id().nullable(),
  }),
);

const GuildInfo = once(() =>
  z.strictObject({
    id: Id(),
    name: z.string(),
    ownerId: Id().nullable(),
    description: z.string().nullable(),
    memberCount: z.int().min(0).nullable().describe('Approximate.'),
  }),
);

/** Actions of `discord.action`. */
export const discordActions = {
  pin: row({
    risk: 'mutate',
    summary: 'Pins a message.',
    params: () => ({ ...channel(), message_id: Id() }),
    result: () => ({ pinned: is, channelId: Id(), messageId: Id() }),
  }),
  unpin: row({
    risk: 'mutate',
    summary: 'Unpins a message.',
    params: () => ({ ...channel(), message_id: Id() }),
    result: () => ({ unpinned: is, channelId: Id(), messageId: Id() }),
  }),
  kick: row({
    risk: 'destructive',
    summary: 'Removes a member from the guild.',
    params: () => ({ ...member(), ...reason() }),
    result: () => ({ kicked: is, guildId: Id(), userId: Id() }),
  }),
  ban: row({
    risk: 'destructive',
    summary: 'Bans a user from the guild.',
    params: () => ({ ...member(), ...reason(), delete_message_days: z.int().min(0).max(7).optional() }),
    result: () => ({ banned: is, guildId: Id(), userId: Id() }),
  }),
  unban: row({
    risk: 'mutate',
    summary: 'Ends the ban of a user.',
    params: () => ({ ...member(), ...reason() }),
    result: () => ({ unbanned: is, guildId: Id(), userId: Id() }),
  }),
  role_add: row({
    risk: 'mutate',
    summary: 'Grants a role to a member.',
    params: () => ({ ...member(), role_id: Id() }),
    result: () => ({ roleAdded: is, guildId: Id(), userId: Id(), roleId: Id() }),
  }),
  role_remove: row({
    risk: 'destructive',
    summary: 'Takes a role from a member.',
    params: () => ({ ...member(), role_id: Id() }),
    result: () => ({ roleRemoved: is, guildId: Id(), userId: Id(), roleId: Id() }),
  }),
  set_topic: row({
    risk: 'mutate',
    summary: 'Sets the topic of a channel.',
    params: () => ({ ...channel(), topic: Topic() }),
    result: () => ({ topicSet: is, channelId: Id() }),
  }),
  set_slowmode: row({
    risk: 'mutate',
    summary: 'Sets the seconds between two messages of one person; 0 switches it off.',
    params: () => ({ ...channel(), seconds: z.int().min(0).max(21_600) }),
    result: () => ({ slowmodeSet: is, channelId: Id(), seconds: z.int() }),
  }),
  guild_info: row({
    risk: 'read',
    summary: 'Returns facts about the guild.',
    params: guild,
    result: () => ({ guild: GuildInfo() }),
  }),
  channel_info: row({
    risk: 'read',
    summary: 'Returns facts about the channel.',
    params: channel,
    result: () => ({ channel: ChannelInfo() }),
  }),
  poll: row({
    risk: 'mutate',
    summary: 'Sends a poll.',
    params: () => ({
      ...channel(),
      question: z.string().min(1).max(300),
      options: z.array(z.string().min(1).max(55)).min(1).max(10),
      allow_multiselect: z.boolean().default(false),
      duration_hours: z.int().min(1).max(768).default(24),
    }),
    result: () => ({ polled: is, channelId: Id(), messageId: Id() }),
  }),
  threadCreate: row({
    risk: 'mutate',
    summary: 'Creates a thread, on a message or without one.',
    params: () => ({
      ...channel(),
      name: Name(),
      message_id: Id().optional(),
      auto_archive_duration: z.literal([60, 1_440, 4_320, 10_080]).default(1_440).describe('Minutes without a message.'),
    }),
    result: () => ({ created: is, threadId: Id() }),
  }),
  threadList: row({
    risk: 'read',
    summary: 'Lists the active threads of the channel.',
    params: channel,
    result: () => ({ threads: z.array(z.strictObject({ id: Id(), name: z.string(), parentId: Id() })) }),
  }),
  threadReply: row({
    risk: 'mutate',
    summary: 'Writes in a thread of the channel.',
    params: () => ({ thread_id: Id().describe('A thread of the channel of the endpoint.'), text: z.string().min(1).max(2_000) }),
    result: () => ({ replied: is, threadId: Id(), messageId: Id() }),
  }),
  channelCreate: row({
    risk: 'mutate',
    summary: 'Creates a channel in the guild.',
    params: () => ({
      ...guild(),
      name: Name(),
      type: z.enum(['text', 'voice', 'category', 'announcement']).default('text'),
      parent_id: Id().optional().describe('A category in the guild of the endpoint.'),
      topic: Topic().optional(),
    }),
    result: () => ({ created: is, channelId: Id() }),
  }),
  channelEdit: row({
    risk: 'mutate',
    summary: 'Changes a channel of the guild.',
    params: () => ({ ...guildChannel(), name: Name().optional(), topic: Topic().optional(), position: z.int().min(0).max(1_000).optional() }),
    result: () => ({ edited: is, channelId: Id() }),
  }),
  channelDelete: row({
    risk: 'destructive',
    summary: 'Deletes a channel of the guild with all its messages.',
    params: guildChannel,
    result: () => ({ deleted: is, channelId: Id() }),
  }),
  channelMove: row({
    risk: 'mutate',
    summary: 'Moves a channel within the list of the guild.',
    params: () => ({ ...guild(), ...guildChannel(), position: z.int().min(0).max(1_000) }),
    result: () => ({ moved: is, channelId: Id() }),
  }),
  setPresence: row({
    risk: 'mutate',
    summary: 'Shows what the bot is doing; without a text it shows nothing.',
    params: () => ({
      status_text: z.string().min(1).max(128).optional(),
      activity_type: z.enum(['playing', 'watching', 'listening', 'competing']).default('playing'),
    }),
    result: () => ({ presenceSet: is }),
  }),
  sendTyping: row({
    risk: 'mutate',
    summary: 'Shows for ten seconds that an answer is being written.',
    params: channel,
    result: () => ({ typing: is }),
  }),
} satisfies PlatformActions;
