import { discordActions } from '@gatehouse/contract';
import * as z from 'zod';
import type { Act, Place } from '../port.ts';
import { noMentions } from './body.ts';
import type { Presence } from './connection.ts';
import { actOf, type Answer, type DiscordRest, type Request } from './rest.ts';
import { Snowflake } from './snowflake.ts';

type Name = keyof typeof discordActions;
type Params<Of extends Name> = z.output<ReturnType<(typeof discordActions)[Of]['params']>>;
type Result = Readonly<Record<string, unknown>>;
type Ending = Promise<Act<Result>>;
type Rows = { readonly [Of in Name]: (params: Params<Of>, at: Coordinates) => Ending };

/** The endpoint of a call, against which the ids of its parameters are checked. */
interface Coordinates {
  readonly conversationId: string;
  /** The thread, or the channel. */
  readonly channel: string;
  readonly signal: AbortSignal;
}

const activities = { playing: 0, listening: 2, watching: 3, competing: 5 } as const;
const channelTypes = { text: 0, voice: 2, category: 4, announcement: 5 } as const;
const publicThread = 11;
const secondsOfDay = 86_400;

const Ignored = z.unknown();
const Created = z.object({ id: Snowflake() });
const ChannelInfo = z.object({
  id: Snowflake(),
  type: z.int(),
  name: z.string().nullish(),
  topic: z.string().nullish(),
  guild_id: Snowflake().nullish(),
  parent_id: Snowflake().nullish(),
});
const GuildInfo = z.object({
  id: Snowflake(),
  name: z.string(),
  owner_id: Snowflake().nullish(),
  description: z.string().nullish(),
  approximate_member_count: z.int().nullish(),
});
const Threads = z.object({ threads: z.array(z.object({ id: Snowflake(), name: z.string(), parent_id: Snowflake().nullish() })) });

const denied = (text: string): Act<never> => ({ is: 'failed', kind: 'denied', text });

/** The actions of Discord, each one request after checks of the ids. */
export class Actions {
  readonly #rest: DiscordRest;
  readonly #show: (presence: Presence) => Promise<boolean>;
  readonly #rows: Rows;

  /** `show` sends a presence over the gateway. */
  constructor(rest: DiscordRest, show: (presence: Presence) => Promise<boolean>) {
    this.#rest = rest;
    this.#show = show;
    this.#rows = this.#createRows();
  }

  async run(name: string, params: Readonly<Record<string, unknown>>, place: Place, signal: AbortSignal): Ending {
    if (!isName(name)) return { is: 'failed', kind: 'invalid', text: `Unsupported action: ${name} on discord` };
    const { conversationId, threadId } = place;
    return this.#runRow(name, params, { conversationId, channel: threadId ?? conversationId, signal });
  }

  #runRow<Of extends Name>(name: Of, params: Readonly<Record<string, unknown>>, at: Coordinates): Ending {
    const parsed = discordActions[name].params().safeParse(params);
    if (!parsed.success) return Promise.resolve({ is: 'failed', kind: 'invalid', text: z.prettifyError(parsed.error) });
    return this.#rows[name](parsed.data as Params<Of>, at);
  }

  #createRows(): Rows {
    return {
      pin: ({ channel_id, message_id: messageId }, at) =>
        this.#inChannel(channel_id, at, (channelId) =>
          this.#change('PUT', `/channels/${channelId}/messages/pins/${messageId}`, at, { pinned: true, channelId, messageId }),
        ),
      unpin: ({ channel_id, message_id: messageId }, at) =>
        this.#inChannel(channel_id, at, (channelId) =>
          this.#change('DELETE', `/channels/${channelId}/messages/pins/${messageId}`, at, { unpinned: true, channelId, messageId }),
        ),
      kick: ({ guild_id, user_id: userId, reason }, at) =>
        this.#inGuild(guild_id, at, (guildId) =>
          this.#change('DELETE', `/guilds/${guildId}/members/${userId}`, at, { kicked: true, guildId, userId }, { reason }),
        ),
      ban: ({ guild_id, user_id: userId, reason, delete_message_days: days = 0 }, at) =>
        this.#inGuild(guild_id, at, (guildId) =>
          this.#change(
            'PUT',
            `/guilds/${guildId}/bans/${userId}`,
            at,
            { banned: true, guildId, userId },
            { reason, body: { delete_message_seconds: days * secondsOfDay } },
          ),
        ),
      unban: ({ guild_id, user_id: userId, reason }, at) =>
        this.#inGuild(guild_id, at, (guildId) =>
          this.#change('DELETE', `/guilds/${guildId}/bans/${userId}`, at, { unbanned: true, guildId, userId }, { reason }),
        ),
      role_add: ({ guild_id, user_id: userId, role_id: roleId }, at) =>
        this.#inGuild(guild_id, at, (guildId) =>
          this.#change('PUT', `/guilds/${guildId}/members/${userId}/roles/${roleId}`, at, { roleAdded: true, guildId, userId, roleId }),
        ),
      role_remove: ({ guild_id, user_id: userId, role_id: roleId }, at) =>
        this.#inGuild(guild_id, at, (guildId) =>
          this.#change('DELETE', `/guilds/${guildId}/members/${userId}/roles/${roleId}`, at, { roleRemoved: true, guildId, userId, roleId }),
        ),
      set_topic: ({ channel_id, topic }, at) =>
        this.#inChannel(channel_id, at, (channelId) =>
          this.#change('PATCH', `/channels/${channelId}`, at, { topicSet: true, channelId }, { body: { topic } }),
        ),
      set_slowmode: ({ channel_id, seconds }, at) =>
        this.#inChannel(channel_id, at, (channelId) =>
          this.#change('PATCH', `/channels/${channelId}`, at, { slowmodeSet: true, channelId, seconds }, { body: { rate_limit_per_user: seconds } }),
        ),
      guild_info: ({ guild_id }, at) => this.#inGuild(guild_id, at, (guildId) => this.#guildInfo(guildId, at)),
      channel_info: ({ channel_id }, at) => this.#inChannel(channel_id, at, (channelId) => this.#channelInfo(channelId, at)),
      poll: ({ channel_id, ...poll }, at) => this.#inChannel(channel_id, at, (channelId) => this.#poll(channelId, poll, at)),
      threadCreate: ({ channel_id, ...thread }, at) => this.#inChannel(channel_id, at, (channelId) => this.#threadCreate(channelId, thread, at)),
      threadList: ({ channel_id }, at) => this.#inChannel(channel_id, at, () => this.#threadList(at)),
      threadReply: ({ thread_id: threadId, text }, at) => this.#threadReply(threadId, text, at),
      channelCreate: ({ guild_id, ...channel }, at) => this.#inGuild(guild_id, at, (guildId) => this.#channelCreate(guildId, channel, at)),
      channelEdit: ({ channel_id: channelId, ...body }, at) =>
        this.#inSameGuild(channelId, at, () => this.#change('PATCH', `/channels/${channelId}`, at, { edited: true, channelId }, { body })),
      channelDelete: ({ channel_id: channelId }, at) =>
        this.#inSameGuild(channelId, at, () => this.#change('DELETE', `/channels/${channelId}`, at, { deleted: true, channelId })),
      channelMove: ({ guild_id, channel_id: channelId, position }, at) =>
        this.#inGuild(guild_id, at, (guildId) =>
          this.#inSameGuild(channelId, at, () =>
            this.#change('PATCH', `/guilds/${guildId}/channels`, at, { moved: true, channelId }, { body: [{ id: channelId, position }] }),
          ),
        ),
      setPresence: (params) => this.#setPresence(params),
      sendTyping: ({ channel_id }, at) =>
        this.#inChannel(channel_id, at, (channelId) => this.#change('POST', `/channels/${channelId}/typing`, at, { typing: true })),
    };
  }

  #inChannel(id: string | undefined, { channel, conversationId }: Coordinates, run: (channelId: string) => Ending): Ending {
    const channelId = id ?? channel;
    return channelId === channel || channelId === conversationId
      ? run(channelId)
      : Promise.resolve(denied('channel_id: expected the channel or thread of the endpoint'));
  }

  async #inGuild(guildId: string, at: Coordinates, run: (guildId: string) => Ending): Ending {
    const own = await this.#guildOf(at.channel, at);
    if (own.is !== 'done') return own;
    return own.value === guildId ? run(guildId) : denied('guild_id: expected the guild of the endpoint');
  }

  async #inSameGuild(channelId: string, at: Coordinates, run: () => Ending): Ending {
    const [own, other] = await Promise.all([this.#guildOf(at.channel, at), this.#guildOf(channelId, at)]);
    if (own.is !== 'done') return own;
    if (other.is !== 'done') return other;
    return own.value === other.value ? run() : denied('channel_id: expected a channel in the guild of the endpoint');
  }

  async #guildOf(channelId: string, at: Coordinates): Promise<Act<string>> {
    const answer = actOf(await this.#get(`/channels/${channelId}`, ChannelInfo, at), false, ({ guild_id: guildId }) => guildId ?? undefined);
    if (answer.is !== 'done') return answer;
    return answer.value === undefined ? denied('The channel is not in a guild') : { is: 'done', value: answer.value };
  }

  #get<Schema extends z.ZodType>(route: `/${string}`, schema: Schema, { signal }: Coordinates, query?: Record<string, string>) {
    return this.#rest.ask('GET', route, schema, { signal, query });
  }

  async #change(
    method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    route: `/${string}`,
    { signal }: Coordinates,
    result: Result,
    request: Pick<Request, 'body' | 'reason'> = {},
  ): Ending {
    return actOf(await this.#rest.ask(method, route, Ignored, { signal, ...request }), true, () => result);
  }

  async #guildInfo(guildId: string, at: Coordinates): Ending {
    return actOf(await this.#get(`/guilds/${guildId}`, GuildInfo, at, { with_counts: 'true' }), false, (guild) => ({
      guild: {
        id: guild.id,
        name: guild.name,
        ownerId: guild.owner_id ?? null,
        description: guild.description ?? null,
        memberCount: guild.approximate_member_count ?? null,
      },
    }));
  }

  async #channelInfo(channelId: string, at: Coordinates): Ending {
    return actOf(await this.#get(`/channels/${channelId}`, ChannelInfo, at), false, (channel) => ({
      channel: {
        id: channel.id,
        type: channel.type,
        name: channel.name ?? null,
        topic: channel.topic ?? null,
        guildId: channel.guild_id ?? null,
        parentId: channel.parent_id ?? null,
      },
    }));
  }

  async #poll(channelId: string, poll: Omit<Params<'poll'>, 'channel_id'>, { signal }: Coordinates): Ending {
    const { question, options, allow_multiselect, duration_hours: duration } = poll;
    const answers = options.map((text) => ({ poll_media: { text } }));
    const body = { poll: { question: { text: question }, answers, allow_multiselect, duration, layout_type: 1 }, ...noMentions };
    const answer = await this.#rest.ask('POST', `/channels/${channelId}/messages`, Created, { signal, body });
    return actOf(answer, true, ({ id }) => ({ polled: true, channelId, messageId: id }));
  }

  async #threadCreate(channelId: string, thread: Omit<Params<'threadCreate'>, 'channel_id'>, { signal }: Coordinates): Ending {
    const { message_id: messageId, ...body } = thread;
    const answer: Answer<z.output<typeof Created>> =
      messageId === undefined
        ? await this.#rest.ask('POST', `/channels/${channelId}/threads`, Created, { signal, body: { ...body, type: publicThread } })
        : await this.#rest.ask('POST', `/channels/${channelId}/messages/${messageId}/threads`, Created, { signal, body });
    return actOf(answer, true, ({ id }) => ({ created: true, threadId: id }));
  }

  async #threadList(at: Coordinates): Ending {
    const guild = await this.#guildOf(at.channel, at);
    if (guild.is !== 'done') return guild;
    return actOf(await this.#get(`/guilds/${guild.value}/threads/active`, Threads, at), false, ({ threads }) => ({
      threads: threads.flatMap(({ id, name, parent_id: parentId }) => (parentId === at.conversationId ? [{ id, name, parentId }] : [])),
    }));
  }

  async #threadReply(threadId: string, text: string, at: Coordinates): Ending {
    const thread = actOf(await this.#get(`/channels/${threadId}`, ChannelInfo, at), false, ({ parent_id: parentId }) => parentId);
    if (thread.is !== 'done') return thread;
    if (thread.value !== at.conversationId) return denied('thread_id: expected a thread of the channel of the endpoint');
    const body = { content: text, ...noMentions };
    const answer = await this.#rest.ask('POST', `/channels/${threadId}/messages`, Created, { signal: at.signal, body });
    return actOf(answer, true, ({ id }) => ({ replied: true, threadId, messageId: id }));
  }

  async #channelCreate(guildId: string, channel: Omit<Params<'channelCreate'>, 'guild_id'>, at: Coordinates): Ending {
    const create = async (): Ending => {
      const body = { ...channel, type: channelTypes[channel.type] };
      const answer = await this.#rest.ask('POST', `/guilds/${guildId}/channels`, Created, { signal: at.signal, body });
      return actOf(answer, true, ({ id }) => ({ created: true, channelId: id }));
    };
    return channel.parent_id === undefined ? create() : this.#inSameGuild(channel.parent_id, at, create);
  }

  async #setPresence({ status_text: name, activity_type: type }: Params<'setPresence'>): Ending {
    const isShown = await this.#show({
      since: null,
      activities: name === undefined ? [] : [{ name, type: activities[type] }],
      status: 'online' as Presence['status'],
      afk: false,
    });
    return isShown ? { is: 'done', value: { presenceSet: true } } : { is: 'failed', kind: 'unavailable', text: 'Discord is not connected' };
  }
}

const isName = (name: string): name is Name => Object.hasOwn(discordActions, name);
