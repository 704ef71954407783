export interface User {
  readonly id: string;
  readonly username: string;
  readonly global_name: string | null;
  readonly bot: boolean;
}

export interface Channel {
  readonly id: string;
  readonly type: number;
  readonly guild_id?: string;
  name?: string;
  topic?: string | null;
  parent_id?: string | null;
  position?: number;
  rate_limit_per_user?: number;
  /** The other person of a direct channel. */
  readonly recipient?: string;
}

export interface Button {
  readonly label: string;
  readonly custom_id: string;
}

interface StoredFile {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly data: Uint8Array;
}

export interface StoredMessage {
  readonly id: string;
  readonly channelId: string;
  readonly author: User;
  readonly atMs: number;
  readonly type: number;
  content: string;
  editedAtMs: number | undefined;
  readonly mentions: readonly string[];
  readonly replyTo: string | undefined;
  buttons: readonly Button[];
  readonly files: readonly StoredFile[];
  readonly isVoice: boolean;
  readonly isWebhook: boolean;
  readonly nonce: string | undefined;
  readonly poll: string | undefined;
  /** Names of users that are notified, or "everyone". */
  readonly notifies: readonly string[];
  /** Users by emoji. */
  readonly reactions: Map<string, Set<string>>;
}

/** A message as a user sees it. */
export interface Shown {
  readonly id: string;
  readonly author: string;
  readonly content: string;
  readonly isEdited: boolean;
  readonly replyTo: string | undefined;
  readonly buttons: readonly string[];
  readonly files: readonly string[];
  readonly isVoice: boolean;
  readonly reactions: readonly string[];
  readonly notifies: readonly string[];
  readonly isPinned: boolean;
  readonly poll: string | undefined;
}

export interface Guild {
  readonly id: string;
  readonly name: string;
  readonly members: Set<string>;
  readonly bans: Set<string>;
  /** `user/role`. */
  readonly roles: Set<string>;
}

export interface NewMessage {
  readonly channel: Channel;
  readonly author: User;
  readonly content: string;
  readonly mentions?: readonly string[];
  readonly replyTo?: string | undefined;
  readonly files?: readonly Omit<StoredFile, 'id'>[];
  readonly isVoice?: boolean;
  readonly isWebhook?: boolean;
  readonly type?: number;
  readonly nonce?: string | undefined;
  readonly buttons?: readonly Button[];
  readonly notifies?: readonly string[];
  readonly poll?: string | undefined;
}

const epochMs = 1_420_070_400_000;
export const threadTypes: ReadonlySet<number> = new Set([10, 11, 12]);

/** Users, guilds, channels and messages. */
export class DiscordWorld {
  readonly bot: User;
  readonly users = new Map<string, User>();
  readonly guilds = new Map<string, Guild>();
  readonly channels = new Map<string, Channel>();
  readonly pins = new Map<string, Set<string>>();
  readonly interactions = new Map<string, string>();
  readonly typing: string[] = [];
  readonly blockedBy = new Set<string>();
  readonly hidden = new Set<string>();
  readonly readOnly = new Set<string>();
  fileEpoch = 1;
  origin = '';
  readonly #messages = new Map<string, StoredMessage[]>();
  readonly #now: () => number;
  #lastId = 0n;

  constructor(now: () => number) {
    this.#now = now;
    this.bot = this.createUser('gate', true);
  }

  nextId(): string {
    const fromTime = BigInt(Math.floor(this.#now()) - epochMs) << 22n;
    this.#lastId = fromTime > this.#lastId ? fromTime : this.#lastId + 1n;
    return String(this.#lastId);
  }

  createUser(username: string, bot: boolean): User {
    const user = { id: this.nextId(), username, global_name: null, bot };
    this.users.set(user.id, user);
    return user;
  }

  createGuild(name: string): Guild {
    const guild = { id: this.nextId(), name, members: new Set<string>(), bans: new Set<string>(), roles: new Set<string>() };
    this.guilds.set(guild.id, guild);
    return guild;
  }

  createChannel(channel: Omit<Channel, 'id'>): Channel {
    const created = { id: this.nextId(), position: 0, ...channel };
    this.channels.set(created.id, created);
    return created;
  }

  createThread(parent: Channel, name: string): Channel {
    return this.createChannel({ type: 11, name, parent_id: parent.id, ...(parent.guild_id !== undefined && { guild_id: parent.guild_id }) });
  }

  directChannel(person: User): Channel {
    const known = [...this.channels.values()].find(({ recipient }) => recipient === person.id);
    return known ?? this.createChannel({ type: 1, recipient: person.id });
  }

  messagesOf(channelId: string): StoredMessage[] {
    const known = this.#messages.get(channelId) ?? [];
    this.#messages.set(channelId, known);
    return known;
  }

  message(channelId: string, messageId: string): StoredMessage {
    const message = this.messagesOf(channelId).find(({ id }) => id === messageId);
    if (message === undefined) throw new Error(`no message ${messageId} in ${channelId}`);
    return message;
  }

  addMessage(message: NewMessage): StoredMessage {
    const { channel, files = [], mentions = [], isVoice = false, isWebhook = false, buttons = [], notifies = [], replyTo, ...rest } = message;
    const guild = channel.guild_id === undefined ? undefined : this.guilds.get(channel.guild_id);
    guild?.members.add(message.author.id);
    const created: StoredMessage = {
      id: this.nextId(),
      channelId: channel.id,
      author: rest.author,
      atMs: this.#now(),
      type: rest.type ?? (replyTo === undefined ? 0 : 19),
      content: rest.content,
      editedAtMs: undefined,
      mentions,
      replyTo,
      buttons,
      files: files.map((file) => ({ ...file, id: this.nextId() })),
      isVoice,
      isWebhook,
      nonce: rest.nonce,
      poll: rest.poll,
      notifies,
      reactions: new Map(),
    };
    this.messagesOf(channel.id).push(created);
    return created;
  }

  removeMessage(channelId: string, messageId: string): void {
    const messages = this.messagesOf(channelId);
    messages.splice(messages.indexOf(this.message(channelId, messageId)), 1);
  }

  shown(channelId: string): readonly Shown[] {
    return this.messagesOf(channelId).map((message) => ({
      id: message.id,
      author: message.author.username,
      content: message.content,
      isEdited: message.editedAtMs !== undefined,
      replyTo: message.replyTo,
      buttons: message.buttons.map(({ label }) => label),
      files: message.files.map(({ name, data }) => `${name} (${data.byteLength})`),
      isVoice: message.isVoice,
      reactions: [...message.reactions].flatMap(([emoji, users]) => (users.size > 0 ? [emoji] : [])),
      notifies: message.notifies,
      isPinned: this.pins.get(channelId)?.has(message.id) === true,
      poll: message.poll,
    }));
  }

  userEvent({ id, username, global_name, bot }: User): object {
    return { id, username, global_name, discriminator: '0', avatar: null, ...(bot && { bot }) };
  }

  guildEvent({ id, name }: Guild): object {
    const all = [...this.channels.values()].filter(({ guild_id: guildId }) => guildId === id);
    // The event itself names the guild.
    const shown = (channels: readonly Channel[]) => channels.map(({ guild_id: _guild, ...channel }) => channel);
    return {
      id,
      name,
      channels: shown(all.filter(({ type }) => !threadTypes.has(type))),
      threads: shown(all.filter(({ type }) => threadTypes.has(type))),
      members: [],
      roles: [],
    };
  }

  /** A message as the gateway sends it. */
  messageEvent(message: StoredMessage): object {
    const { guild_id: guildId } = this.channels.get(message.channelId) ?? {};
    return {
      ...this.messageObject(message, true),
      ...(guildId !== undefined && { guild_id: guildId, member: { nick: null, roles: [], joined_at: new Date(message.atMs).toISOString() } }),
    };
  }

  /** A message as the history has it. */
  messageObject(message: StoredMessage, hasNonce: boolean): object {
    const original = message.replyTo === undefined ? undefined : this.messagesOf(message.channelId).find(({ id }) => id === message.replyTo);
    return {
      id: message.id,
      type: message.type,
      channel_id: message.channelId,
      author: this.userEvent(message.author),
      content: message.content,
      timestamp: new Date(message.atMs).toISOString(),
      edited_timestamp: message.editedAtMs === undefined ? null : new Date(message.editedAtMs).toISOString(),
      tts: false,
      mention_everyone: false,
      mentions: message.mentions.flatMap((id) => this.users.get(id) ?? []).map((user) => this.userEvent(user)),
      mention_roles: [],
      embeds: [],
      pinned: this.pins.get(message.channelId)?.has(message.id) === true,
      flags: message.isVoice ? 8_192 : 0,
      components: message.buttons.length === 0 ? [] : [{ type: 1, components: message.buttons.map((button) => ({ type: 2, style: 2, ...button })) }],
      attachments: message.files.map(({ id, name, type, data }) => ({
        id,
        filename: name,
        content_type: type,
        size: data.byteLength,
        url: `${this.origin}/cdn/${message.channelId}/${message.id}/${id}?ex=${this.fileEpoch}`,
        ...(message.isVoice && { waveform: 'AAAA', duration_secs: 1 }),
      })),
      ...(message.isWebhook && { webhook_id: message.author.id }),
      ...(message.replyTo !== undefined && {
        message_reference: { type: 0, channel_id: message.channelId, message_id: message.replyTo },
        referenced_message: original === undefined ? null : this.messageObject({ ...original, replyTo: undefined }, hasNonce),
      }),
      ...(hasNonce && message.nonce !== undefined && { nonce: message.nonce }),
    };
  }
}
