import * as z from 'zod';
import { createFetch, RequestFailed } from '../http.ts';
import type {
  Act,
  Adapter,
  AdapterDeps,
  Download,
  Ended,
  FetchedMessage,
  LookUp,
  MessageRef,
  OpenWire,
  OutgoingPart,
  Place,
  SendResult,
  Sink,
} from '../port.ts';
import { Actions } from './actions.ts';
import { bodyOf, componentsOf, contentOf, noMentions } from './body.ts';
import type { DiscordKeys } from './config.ts';
import { Connection, type Memory } from './connection.ts';
import { checkedGatewayUrl } from './gateway-url.ts';
import { lookUp } from './look-up.ts';
import { Message } from './message.ts';
import { ChannelKinds } from './channel-kinds.ts';
import { RecentMap } from './recent-map.ts';
import { actOf, type Answer, DiscordRest, type Failure } from './rest.ts';
import { isSnowflake, Snowflake } from './snowflake.ts';

export type DiscordConfig = DiscordKeys;

interface Options {
  readonly signal: AbortSignal;
}

const mostSent = 1_024;
const mostAuthors = 4_096;
const downloadMs = 120_000;
const maxDownload = 26_214_400;
const cdnHosts: ReadonlySet<string> = new Set(['cdn.discordapp.com', 'media.discordapp.net']);
const User = z.object({ id: Snowflake(), username: z.string() });
const GatewayInfo = z.object({ url: z.string() });
const Created = z.object({ id: Snowflake() });

/** Kinds of refusals, by the code of the answer. */
const refusalKinds: ReadonlyMap<number, string> = new Map([
  [10_003, 'no_such_channel'],
  [10_008, 'no_such_message'],
  [40_005, 'too_large'],
  [50_001, 'no_access'],
  [50_007, 'cannot_send'],
  [50_013, 'not_permitted'],
  [50_035, 'invalid'],
]);

export const openDiscord: OpenWire<DiscordConfig> = (deps) => new DiscordAdapter(deps);

class DiscordAdapter implements Adapter {
  readonly #deps: AdapterDeps<DiscordConfig>;
  readonly #rest: DiscordRest;
  readonly #kinds: ChannelKinds;
  readonly #actions: Actions;
  readonly #sent = new RecentMap<string>(mostSent);
  readonly #memory: Memory = { cursor: undefined, failedResumes: 0, presence: null, authors: new RecentMap(mostAuthors), deaf: new Set() };
  readonly #download: typeof fetch;
  #us: z.output<typeof User> | undefined;
  #connection: Connection | undefined;

  constructor(deps: AdapterDeps<DiscordConfig>) {
    this.#deps = deps;
    this.#rest = new DiscordRest({ ...deps.config, clock: deps.clock });
    this.#kinds = new ChannelKinds(this.#rest);
    this.#actions = new Actions(this.#rest, async (presence) => {
      const isShown = (await this.#connection?.show(presence)) === true;
      if (isShown) this.#memory.presence = presence;
      return isShown;
    });
    this.#download = createFetch({ clock: deps.clock, timeoutMs: downloadMs, maxBytes: maxDownload });
  }

  async run(signal: AbortSignal, sink: Sink): Promise<Ended> {
    this.#memory.cursor ??= sink.cursor;
    const us = await this.#rest.ask('GET', '/users/@me', User, { signal });
    if (us.is !== 'answered') return endOf(us, signal);
    this.#us = us.value;
    const gateway = await this.#rest.ask('GET', '/gateway/bot', GatewayInfo, { signal });
    if (gateway.is !== 'answered') return endOf(gateway, signal);
    const gatewayUrl = checkedGatewayUrl(gateway.value.url, this.#deps.config.apiUrl);
    if (gatewayUrl === undefined)
      return { ended: 'transient', text: 'The API names an address of the gateway that is not secure (wss) or not valid' };
    const connection = new Connection({
      ...this.#deps,
      rest: this.#rest,
      kinds: this.#kinds,
      memory: this.#memory,
      sink,
      signal,
      us: us.value,
      gatewayUrl,
    });
    this.#connection = connection;
    try {
      return await connection.run();
    } finally {
      this.#connection = undefined;
    }
  }

  async send(part: OutgoingPart, { key, signal }: Options & { readonly key: string }): Promise<SendResult> {
    const channel = channelOf(part);
    if (channel === undefined || (part.replyTo !== undefined && !isSnowflake(part.replyTo)))
      return { is: 'rejected', kind: 'target', text: 'Not an id of a channel or message of Discord' };
    if (contentOf(part) === '' && part.attachment === undefined) return { is: 'rejected', kind: 'no_text', text: 'The text is empty' };
    let request: Awaited<ReturnType<typeof bodyOf>>;
    try {
      request = await bodyOf(part, key);
    } catch {
      return { is: 'rejected', kind: 'no_attachment', text: 'The attachment cannot be read' };
    }
    const answer = await this.#rest.ask('POST', `/channels/${channel}/messages`, Created, { signal, ...request });
    if (answer.is === 'answered') this.#sent.set(answer.value.id, key);
    return resultOf(answer);
  }

  async lookUp(part: OutgoingPart, { key, sinceMs, signal }: Options & { readonly key: string; readonly sinceMs: number }): Promise<LookUp> {
    const channel = channelOf(part);
    if (channel === undefined) return { is: 'unclear', text: 'Not an id of a channel of Discord' };
    const us = this.#us ?? (await this.#whoAmI(signal));
    if (us === undefined) return { is: 'unclear', text: 'Discord does not say who we are', retry: true };
    return lookUp({ rest: this.#rest, sent: this.#sent, us: us.id, channel, part, key, sinceMs, signal });
  }

  edit(message: MessageRef, part: Pick<OutgoingPart, 'text' | 'markup' | 'buttons'>, options: Options): Promise<Act<object>> {
    const body = { content: contentOf(part), ...noMentions, components: componentsOf(part.buttons ?? []) };
    return this.#change('PATCH', message, '', options, body);
  }

  remove(message: MessageRef, options: Options): Promise<Act<object>> {
    return this.#change('DELETE', message, '', options);
  }

  react(message: MessageRef, emoji: string, options: Options): Promise<Act<object>> {
    return this.#change('PUT', message, `/reactions/${reactionOf(emoji)}/@me`, options);
  }

  unreact(message: MessageRef, emoji: string, options: Options): Promise<Act<object>> {
    return this.#change('DELETE', message, `/reactions/${reactionOf(emoji)}/@me`, options);
  }

  async typing(place: Place, { signal }: Options): Promise<Act<object>> {
    const channel = channelOf(place);
    if (channel === undefined) return notAnId;
    return actOf(await this.#rest.ask('POST', `/channels/${channel}/typing`, z.unknown(), { signal }), true, () => ({}));
  }

  async fetch(
    place: Place,
    { signal, limit, before }: Options & { readonly limit: number; readonly before?: string | undefined },
  ): Promise<Act<readonly FetchedMessage[]>> {
    const channel = channelOf(place);
    if (channel === undefined || (before !== undefined && !isSnowflake(before))) return notAnId;
    const query = { limit: String(Math.min(100, Math.max(1, limit))), ...(before !== undefined && { before }) };
    const answer = await this.#rest.ask('GET', `/channels/${channel}/messages`, z.array(Message), { signal, query });
    return actOf(answer, false, (messages) =>
      messages.map(({ id, author, content, timestamp }) => ({
        messageId: id,
        senderId: author.id,
        text: content,
        sentAtMs: Date.parse(timestamp),
      })),
    );
  }

  /** Addresses of files expire within a day, so the message is fetched for a new one. */
  async download(ref: string, { signal }: Options): Promise<Download> {
    const [channel = '', message = '', attachment = '', ...more] = ref.split('/');
    if (![channel, message, attachment].every(isSnowflake) || more.length > 0) return { is: 'gone', text: 'Not a file of Discord' };
    const answer = await this.#rest.ask('GET', `/channels/${channel}/messages/${message}`, Message, { signal });
    if (answer.is === 'refused') return { is: 'gone', text: answer.text };
    if (answer.is !== 'answered') return { is: 'unavailable', text: answer.text };
    const file = answer.value.attachments.find(({ id }) => id === attachment);
    if (file?.url === undefined) return { is: 'gone', text: 'The message does not have this file any more' };
    if ((file.size ?? 0) > maxDownload) return { is: 'gone', text: `The file is larger than ${maxDownload} bytes` };
    const url = this.#fileUrl(file.url);
    return url === undefined ? { is: 'unavailable', text: 'The file is not on a server of Discord' } : this.#fetchFile(url, signal);
  }

  async action(name: string, params: Readonly<Record<string, unknown>>, place: Place, { signal }: Options) {
    return channelOf(place) === undefined ? notAnId : this.#actions.run(name, params, place, signal);
  }

  async #fetchFile(url: string, signal: AbortSignal): Promise<Download> {
    try {
      const response = await this.#download(url, { signal });
      if (response.status === 403 || response.status === 404) return { is: 'gone', text: 'The file does not exist any more' };
      if (response.status !== 200 || response.body === null) return { is: 'unavailable', text: `The file server answered with ${response.status}` };
      return { is: 'opened', stream: response.body };
    } catch (error) {
      return { is: 'unavailable', text: error instanceof RequestFailed ? error.message : 'The request failed' };
    }
  }

  /** Returns the address of a file when it is on a server of Discord, or on that of the configured API. */
  #fileUrl(text: string): string | undefined {
    const url = URL.parse(text);
    const api = new URL(this.#deps.config.apiUrl);
    if (url === null || url.username !== '' || url.password !== '') return undefined;
    const isKnown = (url.protocol === 'https:' && cdnHosts.has(url.host)) || (url.protocol === api.protocol && url.host === api.host);
    return isKnown ? url.href : undefined;
  }

  async #change(method: 'PATCH' | 'DELETE' | 'PUT', ref: MessageRef, suffix: string, { signal }: Options, body?: object): Promise<Act<object>> {
    const channel = channelOf(ref);
    if (channel === undefined || !isSnowflake(ref.messageId)) return notAnId;
    const route = `/channels/${channel}/messages/${ref.messageId}${suffix}` as const;
    return actOf(await this.#rest.ask(method, route, z.unknown(), { signal, body }), true, () => ({}));
  }

  async #whoAmI(signal: AbortSignal): Promise<z.output<typeof User> | undefined> {
    const answer = await this.#rest.ask('GET', '/users/@me', User, { signal });
    if (answer.is === 'answered') this.#us = answer.value;
    return this.#us;
  }
}

const notAnId = { is: 'failed', kind: 'invalid', text: 'Not an id of a channel or message of Discord' } as const satisfies Act<never>;

/** Returns the channel of a place: a thread is a channel. Undefined when it is not an id. */
function channelOf({ conversationId, threadId }: Place): string | undefined {
  const channel = threadId ?? conversationId;
  return isSnowflake(channel) && isSnowflake(conversationId) ? channel : undefined;
}

/** Returns an emoji for a path: a character, or the name and id of one of the guild (`<:name:id>`). */
const reactionOf = (emoji: string): string => encodeURIComponent((/^<a?:(\w+:\d+)>$/.exec(emoji)?.[1] ?? emoji).toWellFormed());

function endOf(failure: Failure, signal: AbortSignal): Ended {
  if (signal.aborted) return { ended: 'stopped', text: 'Stopped' };
  return failure.is === 'refused' && failure.status === 401
    ? { ended: 'unauthorized', text: 'Discord refuses the token (401): create a new one on the page "Bot" of the application' }
    : { ended: 'transient', text: failure.text };
}

function resultOf(answer: Answer<z.output<typeof Created>>): SendResult {
  switch (answer.is) {
    case 'answered':
      return { is: 'sent', platformId: answer.value.id };
    case 'limited':
      return { is: 'notSent', text: answer.text, retryAfterMs: answer.retryAfterMs, ...(answer.isGlobal && { scope: 'instance' as const }) };
    case 'refused':
      // A new token may be in the configuration soon.
      if (answer.status === 401) return { is: 'notSent', text: 'Discord refuses the token' };
      return { is: 'rejected', kind: answer.status === 413 ? 'too_large' : (refusalKinds.get(answer.code) ?? 'refused'), text: answer.text };
    case 'notSent':
    case 'ambiguous':
      return { is: answer.is, text: answer.text };
  }
}
