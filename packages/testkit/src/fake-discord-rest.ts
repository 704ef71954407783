import type { IncomingMessage, ServerResponse } from 'node:http';
import * as z from 'zod';
import { type Channel, type DiscordWorld, type StoredMessage, threadTypes } from './fake-discord-world.ts';

/** What happens to a request instead of its answer. `cutAfter` and `hangAfter` carry it out first. */
export type DiscordFault =
  | 'cutBefore'
  | 'cutAfter'
  | 'hang'
  | 'hangAfter'
  | { readonly status: number; readonly body?: object | string; readonly headers?: Readonly<Record<string, string>> }
  | { readonly retryAfterMs: number; readonly isGlobal?: boolean };

export interface DiscordRequest {
  readonly method: string;
  /** Without `/api/v10`. */
  readonly path: string;
  readonly body: unknown;
  readonly reason: string | undefined;
}

/** The REST API of the fake, as tests drive it. */
export interface FakeRest {
  /** Requests in their order, also those that failed. */
  readonly requests: readonly DiscordRequest[];
  /** The next requests whose "METHOD path" matches fail. */
  fail(match: RegExp, ...faults: readonly DiscordFault[]): void;
  /** Channels in which the bot was shown as writing. */
  readonly typing: readonly string[];
}

export interface RestServerOptions {
  readonly token: string;
  readonly now: () => number;
  readonly world: DiscordWorld;
  readonly limit: { readonly messages: number; readonly windowMs: number };
  readonly historyHasNonces: boolean;
  readonly origin: () => string;
  readonly gatewayUrl: () => string;
  readonly announce: (name: string, channel: Channel, message: object) => void;
  readonly announceChannel: (name: string, channel: Channel) => void;
}

interface Answer {
  readonly status: number;
  readonly body?: object | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Call {
  readonly body: unknown;
  readonly query: URLSearchParams;
  readonly files: readonly { readonly key: string; readonly name: string; readonly type: string; readonly data: Uint8Array }[];
}

type Handler = (call: Call, ...ids: readonly string[]) => Answer;

const nonceMs = 300_000;
const maxFile = 10_485_760;
const maxBody = 30_000_000;

const refuse = (status: number, code: number, message: string): Answer => ({ status, body: { message, code } });
const unknownChannel = refuse(404, 10_003, 'Unknown Channel');
const unknownMessage = refuse(404, 10_008, 'Unknown Message');
const unknownGuild = refuse(404, 10_004, 'Unknown Guild');
const unknownMember = refuse(404, 10_007, 'Unknown Member');
const missingAccess = refuse(403, 50_001, 'Missing Access');
const missingPermissions = refuse(403, 50_013, 'Missing Permissions');
const done: Answer = { status: 204 };

const Id = z.string().regex(/^\d{17,20}$/);
const Component = z.object({
  type: z.literal(2),
  style: z.int().min(1).max(4),
  label: z.string().min(1).max(80),
  custom_id: z.string().min(1).max(100),
});
const Rows = z.array(z.object({ type: z.literal(1), components: z.array(Component).min(1).max(5) })).max(5);
const Mentions = z.object({ parse: z.array(z.enum(['users', 'roles', 'everyone'])), replied_user: z.boolean().optional() });
const NewMessage = z.object({
  content: z.string().max(2_000).optional(),
  nonce: z.string().max(25).optional(),
  enforce_nonce: z.boolean().optional(),
  allowed_mentions: Mentions.optional(),
  message_reference: z.object({ message_id: Id, fail_if_not_exists: z.boolean().default(true) }).optional(),
  components: Rows.optional(),
  attachments: z
    .array(
      z.object({ id: z.int().min(0), filename: z.string().min(1), duration_secs: z.number().positive().optional(), waveform: z.string().optional() }),
    )
    .optional(),
  flags: z.int().optional(),
  poll: z
    .object({
      question: z.object({ text: z.string().min(1).max(300) }),
      answers: z
        .array(z.object({ poll_media: z.object({ text: z.string().min(1).max(55) }) }))
        .min(1)
        .max(10),
      allow_multiselect: z.boolean().optional(),
      duration: z.int().min(1).max(768).optional(),
      layout_type: z.literal(1).optional(),
    })
    .optional(),
});
const EditedMessage = z.object({ content: z.string().max(2_000), allowed_mentions: Mentions.optional(), components: Rows.optional() });
const EditedChannel = z.object({
  name: z.string().min(1).max(100).optional(),
  topic: z.string().max(1_024).nullable().optional(),
  position: z.int().min(0).optional(),
  rate_limit_per_user: z.int().min(0).max(21_600).optional(),
});
const NewChannel = EditedChannel.extend({
  name: z.string().min(1).max(100),
  type: z.union([z.literal(0), z.literal(2), z.literal(4), z.literal(5)]),
  parent_id: Id.optional(),
});
const NewThread = z.object({
  name: z.string().min(1).max(100),
  type: z.literal([11, 12]).optional(),
  auto_archive_duration: z.literal([60, 1_440, 4_320, 10_080]).optional(),
});
const Positions = z.array(z.object({ id: Id, position: z.int().min(0) }));
const Ban = z.object({ delete_message_seconds: z.int().min(0).max(604_800).optional() });

/** The REST API with the checks, errors and rate limits of Discord. */
export class RestServer implements FakeRest {
  readonly requests: DiscordRequest[] = [];
  readonly acknowledged: string[] = [];
  readonly #options: RestServerOptions;
  readonly #faults: { readonly match: RegExp; readonly fault: DiscordFault }[] = [];
  readonly #nonces = new Map<string, { readonly message: StoredMessage; readonly atMs: number }>();
  readonly #buckets = new Map<string, { fromMs: number; used: number }>();
  readonly #routes: readonly (readonly [method: string, path: RegExp, handler: Handler])[];

  constructor(options: RestServerOptions) {
    this.#options = options;
    this.#routes = this.#createRoutes();
  }

  get typing(): readonly string[] {
    return this.#options.world.typing;
  }

  fail(match: RegExp, ...faults: readonly DiscordFault[]): void {
    this.#faults.push(...faults.map((fault) => ({ match, fault })));
  }

  end(): void {
    this.#faults.length = 0;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET' } = request;
    const url = new URL(request.url ?? '/', 'http://x');
    const call = await readCall(request, url.searchParams).catch(() => undefined);
    if (call === undefined) return void response.writeHead(400).end();
    const path = url.pathname.replace(/^\/api\/v10(?=\/)/, '');
    const reason = request.headers['x-audit-log-reason'];
    this.requests.push({ method, path, body: call.body, reason: typeof reason === 'string' ? decodeURIComponent(reason) : undefined });
    const at = this.#faults.findIndex(({ match }) => match.test(`${method} ${path}`));
    const [scripted] = at === -1 ? [] : this.#faults.splice(at, 1);
    const fault = scripted?.fault;
    if (fault === 'hang') return;
    if (fault === 'cutBefore') return void request.socket.destroy();
    if (typeof fault === 'object') return send(response, answerOfFault(fault));
    const answer = path.startsWith('/cdn/') ? this.#file(path, url.searchParams) : this.#answer(method, path, url.pathname, request, call);
    if (fault === 'cutAfter') return void request.socket.destroy();
    if (fault === 'hangAfter') return;
    send(response, answer);
  }

  #answer(method: string, path: string, fullPath: string, { headers }: IncomingMessage, call: Call): Answer {
    if (!fullPath.startsWith('/api/v10/')) return refuse(404, 0, '404: Not Found');
    if (!path.startsWith('/interactions/') && headers.authorization !== `Bot ${this.#options.token}`) return refuse(401, 0, '401: Unauthorized');
    if (headers['user-agent']?.startsWith('DiscordBot (') !== true) return refuse(403, 40_333, 'internal network error');
    for (const [wanted, pattern, handler] of this.#routes) {
      const ids = wanted === method ? pattern.exec(path)?.slice(1) : undefined;
      if (ids !== undefined) return handler(call, ...ids);
    }
    return refuse(404, 0, '404: Not Found');
  }

  #createRoutes(): readonly (readonly [string, RegExp, Handler])[] {
    const { world, gatewayUrl } = this.#options;
    const id = '(\\d{17,20})';
    const at = (path: string) => new RegExp(`^${path.replaceAll(':id', id)}$`);
    const inGuild =
      (handler: (call: Call, guild: NonNullable<ReturnType<DiscordWorld['guilds']['get']>>, ...ids: readonly string[]) => Answer): Handler =>
      (call, guildId = '', ...ids) => {
        const guild = world.guilds.get(guildId);
        return guild === undefined ? unknownGuild : handler(call, guild, ...ids);
      };
    const inChannel =
      (handler: (call: Call, channel: Channel, ...ids: readonly string[]) => Answer): Handler =>
      (call, channelId = '', ...ids) => {
        const channel = world.channels.get(channelId);
        if (channel === undefined) return unknownChannel;
        return world.hidden.has(channelId) ? missingAccess : handler(call, channel, ...ids);
      };
    const withMessage = (handler: (call: Call, channel: Channel, message: StoredMessage, ...more: readonly string[]) => Answer): Handler =>
      inChannel((call, channel, messageId = '', ...more) => {
        const message = world.messagesOf(channel.id).find((one) => one.id === messageId);
        return message === undefined ? unknownMessage : handler(call, channel, message, ...more);
      });
    const session_start_limit = { total: 1_000, remaining: 999, reset_after: 14_400_000, max_concurrency: 1 };
    return [
      ['GET', at('/gateway/bot'), () => ({ status: 200, body: { url: gatewayUrl(), shards: 1, session_start_limit } })],
      ['GET', at('/users/@me'), () => ({ status: 200, body: world.userEvent(world.bot) })],
      ['GET', at('/channels/:id'), inChannel((_call, channel) => ({ status: 200, body: channel }))],
      ['PATCH', at('/channels/:id'), inChannel((call, channel) => this.#editChannel(call, channel))],
      ['DELETE', at('/channels/:id'), inChannel((_call, channel) => this.#removeChannel(channel))],
      ['GET', at('/channels/:id/messages'), inChannel((call, channel) => this.#history(call, channel))],
      ['POST', at('/channels/:id/messages'), inChannel((call, channel) => this.#send(call, channel))],
      ['GET', at('/channels/:id/messages/:id'), withMessage((_call, _channel, message) => this.#messageAnswer(message, false))],
      ['PATCH', at('/channels/:id/messages/:id'), withMessage((call, channel, message) => this.#editMessage(call, channel, message))],
      ['DELETE', at('/channels/:id/messages/:id'), withMessage((_call, channel, message) => this.#removeMessage(channel, message))],
      [
        'PUT',
        at('/channels/:id/messages/:id/reactions/([^/]+)/@me'),
        withMessage((_call, _channel, message, emoji) => this.#react(message, emoji, true)),
      ],
      [
        'DELETE',
        at('/channels/:id/messages/:id/reactions/([^/]+)/@me'),
        withMessage((_call, _channel, message, emoji) => this.#react(message, emoji, false)),
      ],
      [
        'POST',
        at('/channels/:id/typing'),
        inChannel((_call, channel) => {
          world.typing.push(channel.id);
          return done;
        }),
      ],
      ['PUT', at('/channels/:id/messages/pins/:id'), withMessage((_call, channel, message) => this.#pin(channel, message, true))],
      ['DELETE', at('/channels/:id/messages/pins/:id'), withMessage((_call, channel, message) => this.#pin(channel, message, false))],
      ['POST', at('/channels/:id/threads'), inChannel((call, channel) => this.#createThread(call, channel))],
      ['POST', at('/channels/:id/messages/:id/threads'), withMessage((call, channel) => this.#createThread(call, channel))],
      ['POST', at('/interactions/:id/([^/]+)/callback'), (call, interaction = '', token = '') => this.#acknowledge(call, interaction, token)],
      [
        'GET',
        at('/guilds/:id'),
        inGuild(({ query }, guild) => ({
          status: 200,
          body: {
            id: guild.id,
            name: guild.name,
            owner_id: [...guild.members][0] ?? world.bot.id,
            description: null,
            ...(query.get('with_counts') === 'true' && { approximate_member_count: guild.members.size }),
          },
        })),
      ],
      [
        'GET',
        at('/guilds/:id/threads/active'),
        inGuild((_call, guild) => ({
          status: 200,
          body: { threads: [...world.channels.values()].filter((one) => one.guild_id === guild.id && threadTypes.has(one.type)), members: [] },
        })),
      ],
      ['POST', at('/guilds/:id/channels'), inGuild((call, guild) => this.#createChannel(call, guild.id))],
      ['PATCH', at('/guilds/:id/channels'), inGuild((call) => this.#moveChannels(call))],
      ['DELETE', at('/guilds/:id/members/:id'), inGuild((_call, guild, user = '') => (guild.members.delete(user) ? done : unknownMember))],
      [
        'PUT',
        at('/guilds/:id/bans/:id'),
        inGuild(({ body }, guild, user = '') =>
          checked(Ban, body ?? {}, () => {
            guild.members.delete(user);
            guild.bans.add(user);
            return done;
          }),
        ),
      ],
      [
        'DELETE',
        at('/guilds/:id/bans/:id'),
        inGuild((_call, guild, user = '') => (guild.bans.delete(user) ? done : refuse(404, 10_026, 'Unknown Ban'))),
      ],
      [
        'PUT',
        at('/guilds/:id/members/:id/roles/:id'),
        inGuild((_call, guild, user = '', role = '') => {
          if (!guild.members.has(user)) return unknownMember;
          guild.roles.add(`${user}/${role}`);
          return done;
        }),
      ],
      [
        'DELETE',
        at('/guilds/:id/members/:id/roles/:id'),
        inGuild((_call, guild, user = '', role = '') => (guild.roles.delete(`${user}/${role}`) ? done : unknownMember)),
      ],
    ];
  }

  #send(call: Call, channel: Channel): Answer {
    const { world, now } = this.#options;
    if (channel.recipient !== undefined && world.blockedBy.has(channel.recipient)) return refuse(403, 50_007, 'Cannot send messages to this user');
    if (world.readOnly.has(channel.id)) return missingPermissions;
    if (call.files.some(({ data }) => data.byteLength > maxFile)) return refuse(413, 40_005, 'Request entity too large');
    return checked(NewMessage, call.body, (body) => {
      const limited = this.#limited(channel.id);
      if (limited.answer !== undefined) return limited.answer;
      const known = body.nonce === undefined ? undefined : this.#nonces.get(body.nonce);
      const isRepeat = body.enforce_nonce === true && known !== undefined && now() - known.atMs < nonceMs;
      const answer = isRepeat ? this.#messageAnswer(known.message, true) : this.#create(call, channel, body);
      return { ...answer, headers: { ...answer.headers, ...limited.headers } };
    });
  }

  #create({ files }: Call, channel: Channel, body: z.output<typeof NewMessage>): Answer {
    const { world, announce, now } = this.#options;
    const { content = '', components = [], message_reference: reference, nonce, poll, attachments = [], flags = 0 } = body;
    const isVoice = (flags & 8_192) !== 0;
    if (content.trim() === '' && files.length === 0 && poll === undefined) return refuse(400, 50_006, 'Cannot send an empty message');
    if (isVoice && (content !== '' || files.length !== 1 || attachments[0]?.waveform === undefined || attachments[0].duration_secs === undefined))
      return refuse(400, 50_161, 'Voice messages must have supported metadata');
    const buttons = components.flatMap((row) => row.components);
    if (new Set(buttons.map((button) => button.custom_id)).size < buttons.length)
      return invalid([{ path: ['components'], code: 'COMPONENT_CUSTOM_ID_DUPLICATED', message: 'Component custom id cannot be duplicated' }]);
    const original = reference === undefined ? undefined : world.messagesOf(channel.id).find(({ id }) => id === reference.message_id);
    if (reference?.fail_if_not_exists === true && original === undefined)
      return invalid([{ path: ['message_reference'], code: 'REPLIES_UNKNOWN_MESSAGE', message: 'Unknown message' }]);
    const message = world.addMessage({
      channel,
      author: world.bot,
      content: content.trim(),
      replyTo: original?.id,
      nonce,
      buttons: buttons.map(({ label, custom_id }) => ({ label, custom_id })),
      files,
      isVoice,
      poll: poll === undefined ? undefined : `${poll.question.text} ${poll.answers.map(({ poll_media: { text } }) => text).join('/')}`,
      notifies: this.#notified(content, body.allowed_mentions),
    });
    if (nonce !== undefined) this.#nonces.set(nonce, { message, atMs: now() });
    announce('MESSAGE_CREATE', channel, world.messageEvent(message));
    return this.#messageAnswer(message, true);
  }

  #notified(content: string, allowed: z.output<typeof Mentions> | undefined): readonly string[] {
    const may = (what: 'users' | 'everyone') => allowed === undefined || allowed.parse.includes(what);
    const users = [...content.matchAll(/<@!?(\d+)>/g)].flatMap(([, id = '']) => this.#options.world.users.get(id)?.username ?? []);
    return [...(may('users') ? users : []), ...(may('everyone') && /@(everyone|here)/.test(content) ? ['everyone'] : [])];
  }

  #limited(channelId: string): { readonly answer?: Answer; readonly headers: Readonly<Record<string, string>> } {
    const { limit, now } = this.#options;
    const bucket = this.#buckets.get(channelId);
    const current = bucket === undefined || now() - bucket.fromMs >= limit.windowMs ? { fromMs: now(), used: 0 } : bucket;
    this.#buckets.set(channelId, current);
    const waitMs = current.fromMs + limit.windowMs - now();
    const headers = (remaining: number) => ({
      'x-ratelimit-limit': String(limit.messages),
      'x-ratelimit-remaining': String(remaining),
      'x-ratelimit-reset-after': (waitMs / 1_000).toFixed(3),
      'x-ratelimit-bucket': 'messages',
    });
    if (current.used >= limit.messages) return { answer: limitedAnswer(waitMs, false, headers(0)), headers: {} };
    current.used += 1;
    return { headers: headers(limit.messages - current.used) };
  }

  #messageAnswer(message: StoredMessage, hasNonce: boolean): Answer {
    return { status: 200, body: this.#options.world.messageObject(message, hasNonce) };
  }

  #history({ query }: Call, channel: Channel): Answer {
    const limit = Number(query.get('limit') ?? 50);
    if (!(limit >= 1 && limit <= 100))
      return invalid([{ path: ['limit'], code: 'NUMBER_TYPE_RANGE', message: 'int value should be between 1 and 100' }]);
    const [after, before] = [query.get('after'), query.get('before')];
    const all = this.#options.world.messagesOf(channel.id);
    // The oldest ones after an id, the newest ones otherwise; each page has the newest first.
    const page =
      after === null
        ? all.filter(({ id }) => before === null || BigInt(id) < BigInt(before)).slice(-limit)
        : all.filter(({ id }) => BigInt(id) > BigInt(after)).slice(0, limit);
    const { world, historyHasNonces } = this.#options;
    return { status: 200, body: page.toReversed().map((message) => world.messageObject(message, historyHasNonces)) };
  }

  #editMessage({ body }: Call, channel: Channel, message: StoredMessage): Answer {
    const { world, now, announce } = this.#options;
    if (message.author.id !== world.bot.id) return refuse(403, 50_005, 'Cannot edit a message authored by another user');
    return checked(EditedMessage, body, ({ content, components = [] }) => {
      message.content = content;
      message.editedAtMs = now();
      message.buttons = components.flatMap((row) => row.components.map(({ label, custom_id }) => ({ label, custom_id })));
      announce('MESSAGE_UPDATE', channel, world.messageEvent(message));
      return this.#messageAnswer(message, false);
    });
  }

  #removeMessage(channel: Channel, message: StoredMessage): Answer {
    const { world, announce } = this.#options;
    if (message.author.id !== world.bot.id && channel.guild_id === undefined) return refuse(403, 50_003, 'Cannot execute action on a DM channel');
    world.removeMessage(channel.id, message.id);
    announce('MESSAGE_DELETE', channel, {
      id: message.id,
      channel_id: channel.id,
      ...(channel.guild_id !== undefined && { guild_id: channel.guild_id }),
    });
    return done;
  }

  #react(message: StoredMessage, encoded = '', isSet: boolean): Answer {
    const emoji = decodeURIComponent(encoded);
    if (!/^\p{Extended_Pictographic}/u.test(emoji) && !/^\w+:\d{17,20}$/.test(emoji)) return refuse(400, 10_014, 'Unknown Emoji');
    const users = message.reactions.get(emoji) ?? new Set<string>();
    message.reactions.set(emoji, users);
    if (isSet) users.add(this.#options.world.bot.id);
    else users.delete(this.#options.world.bot.id);
    return done;
  }

  #pin(channel: Channel, message: StoredMessage, isSet: boolean): Answer {
    const { pins } = this.#options.world;
    const pinned = pins.get(channel.id) ?? new Set<string>();
    pins.set(channel.id, pinned);
    if (isSet) pinned.add(message.id);
    else pinned.delete(message.id);
    return done;
  }

  #createThread({ body }: Call, channel: Channel): Answer {
    const { world, announceChannel } = this.#options;
    return checked(NewThread, body, ({ name }) => {
      const thread = world.createThread(channel, name);
      announceChannel('THREAD_CREATE', thread);
      return { status: 201, body: thread };
    });
  }

  #createChannel({ body }: Call, guildId: string): Answer {
    const { world, announceChannel } = this.#options;
    return checked(NewChannel, body, ({ name, type, topic, parent_id }) => {
      const channel = world.createChannel({
        name,
        type,
        guild_id: guildId,
        ...(topic !== undefined && { topic }),
        ...(parent_id !== undefined && { parent_id }),
      });
      announceChannel('CHANNEL_CREATE', channel);
      return { status: 201, body: channel };
    });
  }

  #editChannel({ body }: Call, channel: Channel): Answer {
    return checked(EditedChannel, body, ({ name, topic, position, rate_limit_per_user }) => {
      if (name !== undefined) channel.name = name;
      if (topic !== undefined) channel.topic = topic;
      if (position !== undefined) channel.position = position;
      if (rate_limit_per_user !== undefined) channel.rate_limit_per_user = rate_limit_per_user;
      return { status: 200, body: channel };
    });
  }

  #removeChannel(channel: Channel): Answer {
    this.#options.world.channels.delete(channel.id);
    return { status: 200, body: channel };
  }

  #moveChannels({ body }: Call): Answer {
    return checked(Positions, body, (positions) => {
      for (const { id, position } of positions) {
        const channel = this.#options.world.channels.get(id);
        if (channel !== undefined) channel.position = position;
      }
      return done;
    });
  }

  #acknowledge({ body }: Call, id: string, token: string): Answer {
    if (this.#options.world.interactions.get(id) !== token) return refuse(404, 10_062, 'Unknown interaction');
    if (this.acknowledged.includes(id)) return refuse(400, 40_060, 'Interaction has already been acknowledged.');
    return checked(z.object({ type: z.literal(6) }), body, () => {
      this.acknowledged.push(id);
      return done;
    });
  }

  #file(path: string, query: URLSearchParams): Answer {
    const { world } = this.#options;
    const [, , channelId = '', messageId = '', fileId = ''] = path.split('/');
    const file = world
      .messagesOf(channelId)
      .find(({ id }) => id === messageId)
      ?.files.find(({ id }) => id === fileId);
    if (file === undefined || query.get('ex') !== String(world.fileEpoch))
      return { status: 404, body: { message: 'This content is no longer available.' } };
    return { status: 200, body: file.data };
  }
}

function answerOfFault(fault: Exclude<DiscordFault, string>): Answer {
  if ('retryAfterMs' in fault) return limitedAnswer(fault.retryAfterMs, fault.isGlobal === true, {});
  const { status, body = { message: `${status}: Fault`, code: 0 }, headers } = fault;
  return typeof body === 'string'
    ? { status, body: Buffer.from(body), headers: { 'content-type': 'text/html', ...headers } }
    : { status, body, ...(headers !== undefined && { headers }) };
}

/** The header has whole seconds, the body a fraction. */
const limitedAnswer = (waitMs: number, isGlobal: boolean, headers: Readonly<Record<string, string>>): Answer => ({
  status: 429,
  body: { message: 'You are being rate limited.', retry_after: waitMs / 1_000, global: isGlobal },
  headers: {
    'retry-after': String(Math.ceil(waitMs / 1_000)),
    'x-ratelimit-scope': isGlobal ? 'global' : 'user',
    ...(isGlobal ? { 'x-ratelimit-global': 'true' } : { 'x-ratelimit-reset-after': (waitMs / 1_000).toFixed(3), 'x-ratelimit-remaining': '0' }),
    ...headers,
  },
});

interface Problem {
  readonly path: readonly PropertyKey[];
  readonly code: string;
  readonly message: string;
}

/** An error of a form, in the shape of Discord: problems under the path of their fields. */
function invalid(problems: readonly Problem[]): Answer {
  const errors: Record<string, unknown> = {};
  for (const { path, code, message } of problems) {
    let at = errors;
    for (const key of path) at = (at[String(key)] ??= {}) as Record<string, unknown>;
    at['_errors'] = [{ code, message }];
  }
  return { status: 400, body: { message: 'Invalid Form Body', code: 50_035, errors } };
}

function checked<Schema extends z.ZodType>(schema: Schema, body: unknown, run: (parsed: z.output<Schema>) => Answer): Answer {
  const parsed = schema.safeParse(body);
  if (parsed.success) return run(parsed.data);
  return invalid(
    parsed.error.issues.map((issue) =>
      issue.code === 'too_big'
        ? { path: issue.path, code: 'BASE_TYPE_MAX_LENGTH', message: `Must be ${issue.maximum} or fewer in length.` }
        : { path: issue.path, code: 'BASE_TYPE_BAD', message: issue.message },
    ),
  );
}

function send(response: ServerResponse, { status, body, headers = {} }: Answer): void {
  const isFile = body instanceof Uint8Array;
  response.writeHead(status, { ...(body !== undefined && { 'content-type': isFile ? 'application/octet-stream' : 'application/json' }), ...headers });
  response.end(body === undefined || isFile ? body : JSON.stringify(body));
}

async function readCall(request: IncomingMessage, query: URLSearchParams): Promise<Call> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.byteLength;
    if (size > maxBody) throw new Error('too large');
    parts.push(part);
  }
  const type = request.headers['content-type'] ?? '';
  const raw = Buffer.concat(parts);
  if (!type.startsWith('multipart/form-data')) return { body: raw.length === 0 ? undefined : JSON.parse(raw.toString('utf8')), query, files: [] };
  const form = await new Response(raw, { headers: { 'content-type': type } }).formData();
  const json = form.get('payload_json');
  const files: Call['files'][number][] = [];
  for (const [key, value] of form)
    if (typeof value !== 'string') files.push({ key, name: value.name, type: value.type, data: new Uint8Array(await value.arrayBuffer()) });
  return { body: typeof json === 'string' ? JSON.parse(json) : {}, query, files };
}
