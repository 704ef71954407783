import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type FakeGateway, GatewayServer } from './fake-discord-gateway.ts';
import { type DiscordFault, type FakeRest, RestServer } from './fake-discord-rest.ts';
import { type Channel, DiscordWorld, type Shown, type User } from './fake-discord-world.ts';

export interface FakeDiscordOptions {
  readonly token?: string;
  /** Time of ids and limits; the system's when absent. */
  readonly now?: () => number;
  /** Interval that clients are asked for; 41 250 when absent, as Discord does. */
  readonly heartbeatMs?: number;
  /** Messages that each channel takes in a time. */
  readonly limit?: { readonly messages: number; readonly windowMs: number };
  /** The history contains the nonces of messages; false when absent. */
  readonly historyHasNonces?: boolean;
}

export interface WriteOptions {
  /** The text notifies the bot. */
  readonly mentionsBot?: boolean;
  readonly replyTo?: string;
  readonly files?: readonly { readonly name: string; readonly type: string; readonly data: Uint8Array }[];
  readonly isVoice?: boolean;
  /** Sent by a webhook of the channel. */
  readonly webhook?: boolean;
  /** Not an ordinary message: 7 is "joined the guild". */
  readonly type?: number;
}

/** Discord, as far as a bot sees it: REST, gateway, files. The real client libraries accept it. */
export interface FakeDiscord extends AsyncDisposable {
  readonly apiUrl: string;
  readonly port: number;
  readonly token: string;
  readonly bot: User;
  readonly rest: FakeRest;
  readonly gateway: FakeGateway;
  /** Creates a person, or another bot. */
  person(name: string, options?: { readonly isBot?: boolean }): User;
  /** Returns the channel of direct messages between a person and the bot. */
  directChannel(person: User): Channel;
  guild(name: string): { readonly id: string };
  channel(guild: { readonly id: string }, name: string): Channel;
  thread(parent: Channel, name: string): Channel;
  write(person: User, channel: Channel, text: string, options?: WriteOptions): string;
  edit(channel: Channel, messageId: string, text: string): void;
  /** Discord adds the preview of a link: an update without an edit. */
  unfurl(channel: Channel, messageId: string): void;
  remove(channel: Channel, ...messageIds: readonly string[]): void;
  /** Presses a button of a message; fails when there is none with this label. Returns the id of the interaction. */
  press(person: User, channel: Channel, messageId: string, label: string): string;
  /** Interactions that were acknowledged. */
  readonly acknowledged: readonly string[];
  /** What a user sees in a channel, oldest first. */
  shown(channel: Channel | string): readonly Shown[];
  /** Nobody may write to this person any more. */
  block(person: User): void;
  /** The bot must not see a channel, or not write in it. */
  forbid(channel: Channel, what: 'see' | 'write'): void;
  /** The addresses of files that were handed out do not work any more. */
  expireFiles(): void;
  /** The address of the gateway that clients get. */
  announceGateway(url: string): void;
}

export type { Channel as FakeDiscordChannel, DiscordFault, User as FakeDiscordUser };

const intents = { guilds: 1 << 0, guildMessages: 1 << 9, directMessages: 1 << 12 } as const;

export async function startFakeDiscord(options: FakeDiscordOptions = {}): Promise<FakeDiscord> {
  const { token = `fake.${randomBytes(18).toString('base64url')}`, now = Date.now, heartbeatMs = 41_250 } = options;
  const world = new DiscordWorld(now);
  let origin = '';
  let gatewayUrl: string | undefined;
  const gateway = new GatewayServer({
    token,
    heartbeatMs,
    resumeUrl: () => `${origin.replace('http', 'ws')}/resume`,
    ready: () => ({
      user: world.bot,
      guilds: [...world.guilds.values()].map(({ id }) => ({ id, unavailable: true })),
      application: { id: world.bot.id, flags: 0 },
    }),
    welcome: () => [...world.guilds.values()].map((guild) => ({ name: 'GUILD_CREATE', data: world.guildEvent(guild) })),
  });
  const announce = (name: string, channel: Channel, dataFor: (seesContent: boolean) => object) =>
    gateway.dispatch(name, channel.guild_id === undefined ? intents.directMessages : intents.guildMessages, dataFor);
  const rest = new RestServer({
    token,
    now,
    world,
    limit: options.limit ?? { messages: 1_000, windowMs: 1_000 },
    historyHasNonces: options.historyHasNonces ?? false,
    origin: () => origin,
    gatewayUrl: () => gatewayUrl ?? `${origin.replace('http', 'ws')}/gateway`,
    announce: (name, channel, message) => announce(name, channel, () => message),
    announceChannel: (name, channel) => gateway.dispatch(name, intents.guilds, () => channel),
  });
  const server = createServer((request: IncomingMessage, response: ServerResponse) => void rest.handle(request, response));
  server.on('upgrade', (request, socket, head) => gateway.accept(request, socket, head));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  origin = `http://127.0.0.1:${port}`;
  world.origin = origin;

  const sayMessage = (name: string, channel: Channel, messageId: string) => {
    const message = world.message(channel.id, messageId);
    announce(name, channel, (seesContent) => {
      const isShown = seesContent || channel.guild_id === undefined || message.mentions.includes(world.bot.id);
      const event = world.messageEvent(message);
      return isShown ? event : { ...event, content: '', attachments: [], components: [] };
    });
  };
  return {
    apiUrl: `${origin}/api`,
    port,
    token,
    bot: world.bot,
    rest,
    gateway,
    person: (name, { isBot = false } = {}) => world.createUser(name, isBot),
    directChannel: (person) => world.directChannel(person),
    guild: (name) => {
      const guild = world.createGuild(name);
      gateway.dispatch('GUILD_CREATE', intents.guilds, () => world.guildEvent(guild));
      return guild;
    },
    channel: (guild, name) => {
      const channel = world.createChannel({ type: 0, guild_id: guild.id, name });
      gateway.dispatch('CHANNEL_CREATE', intents.guilds, () => channel);
      return channel;
    },
    thread: (parent, name) => {
      const thread = world.createThread(parent, name);
      gateway.dispatch('THREAD_CREATE', intents.guilds, () => thread);
      return thread;
    },
    write(person, channel, text, more = {}) {
      const message = world.addMessage({
        channel,
        author: person,
        content: text,
        mentions: more.mentionsBot === true ? [world.bot.id] : [],
        replyTo: more.replyTo,
        files: more.files ?? [],
        isVoice: more.isVoice ?? false,
        isWebhook: more.webhook ?? false,
        ...(more.type !== undefined && { type: more.type }),
      });
      sayMessage('MESSAGE_CREATE', channel, message.id);
      return message.id;
    },
    edit(channel, messageId, text) {
      const message = world.message(channel.id, messageId);
      message.content = text;
      message.editedAtMs = now();
      sayMessage('MESSAGE_UPDATE', channel, messageId);
    },
    unfurl: (channel, messageId) => sayMessage('MESSAGE_UPDATE', channel, messageId),
    remove(channel, ...messageIds) {
      for (const id of messageIds) world.removeMessage(channel.id, id);
      const where = { channel_id: channel.id, ...(channel.guild_id !== undefined && { guild_id: channel.guild_id }) };
      const [only] = messageIds;
      if (messageIds.length === 1) announce('MESSAGE_DELETE', channel, () => ({ id: only, ...where }));
      else announce('MESSAGE_DELETE_BULK', channel, () => ({ ids: messageIds, ...where }));
    },
    press(person, channel, messageId, label) {
      const message = world.message(channel.id, messageId);
      const button = message.buttons.find((one) => one.label === label);
      if (button === undefined) throw new Error(`the message has no button "${label}"`);
      const id = world.nextId();
      const interaction = { id, token: randomBytes(32).toString('base64url') };
      world.interactions.set(id, interaction.token);
      const user = world.userEvent(person);
      gateway.dispatch('INTERACTION_CREATE', 0, () => ({
        ...interaction,
        type: 3,
        version: 1,
        application_id: world.bot.id,
        channel_id: channel.id,
        ...(channel.guild_id === undefined ? { user } : { guild_id: channel.guild_id, member: { user, nick: null, roles: [] } }),
        message: world.messageEvent(message),
        data: { component_type: 2, custom_id: button.custom_id },
      }));
      return id;
    },
    acknowledged: rest.acknowledged,
    shown: (channel) => world.shown(typeof channel === 'string' ? channel : channel.id),
    block: (person) => void world.blockedBy.add(person.id),
    forbid: (channel, what) => void (what === 'see' ? world.hidden : world.readOnly).add(channel.id),
    expireFiles: () => {
      world.fileEpoch += 1;
    },
    announceGateway: (url) => {
      gatewayUrl = url;
    },
    async [Symbol.asyncDispose]() {
      gateway.end();
      rest.end();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
