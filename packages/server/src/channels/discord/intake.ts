import * as z from 'zod';
import { sleep } from '../../kernel/timers.ts';
import type { AdapterDeps, ReceivedMessage, Sink } from '../port.ts';
import { Deleted, deletedOf, Interaction, Message, messageOf, pressOf } from './message.ts';
import { type ChannelKind, type ChannelKinds, ChannelUnknown } from './channel-kinds.ts';
import type { Position, Session } from './position.ts';
import type { RecentMap } from './recent-map.ts';
import type { DiscordRest } from './rest.ts';
import { isNewer, snowflakeAt } from './snowflake.ts';

export interface IntakeDeps extends Pick<AdapterDeps<unknown>, 'clock' | 'log'> {
  readonly rest: DiscordRest;
  readonly kinds: ChannelKinds;
  readonly position: Position;
  readonly sink: Sink;
  readonly signal: AbortSignal;
  /** Our user. */
  readonly us: string;
  readonly authors: RecentMap<string>;
  /** The cursor is committed. */
  readonly onCommit: (cursor: string) => void;
  /** The gateway reported a message of a channel. */
  readonly onReported: (channelId: string) => void;
  /** Nothing more is taken: what was not stored comes again when the session is resumed. */
  readonly onFailure: (text: string) => void;
}

/** An event of the gateway, a session that begins (`undefined`: that ended), or messages that the gateway did not report. */
type Item =
  | { readonly is: 'event'; readonly seq: number; readonly name: string; readonly data: unknown }
  | { readonly is: 'session'; readonly session: Session | undefined }
  | { readonly is: 'missed' };

interface Found {
  readonly message: ReceivedMessage;
  readonly press?: Interaction | undefined;
}

/** Events not yet handled; beyond, the connection ends, and Discord sends them again. */
const mostWaiting = 4_096;
const takenAtOnce = 64;
/** Time between two commits of a cursor without messages. */
const cursorEveryMs = 10_000;
const pageSize = 100;
/** Older messages are not fetched when a session is gone. */
const maxAgeMs = 60 * 60_000;
const longestWaitMs = 60_000;
/** Type of the answer to a pressed button: nothing changes. */
const deferredUpdate = 6;

const isMessageEvent = (name: string): boolean => name.startsWith('MESSAGE_') || name === 'INTERACTION_CREATE';
const isChannelEvent = (name: string): boolean => name === 'GUILD_CREATE' || name === 'THREAD_CREATE' || name === 'CHANNEL_CREATE';

/** Events on their way into the storage, in their order. */
export class Intake {
  readonly #deps: IntakeDeps;
  readonly #waiting: Item[] = [];
  #working: Promise<void> | undefined;
  #isEnded = false;
  /** The position is ahead of what is stored. */
  #isBroken = false;
  #isDirty = false;
  #storedAtMs: number;
  #cancelTimer: (() => void) | undefined;

  constructor(deps: IntakeDeps) {
    this.#deps = deps;
    this.#storedAtMs = deps.clock.monotonic();
  }

  /** Takes an event of the gateway. Those that are of no interest only advance the sequence. */
  event(seq: number, name: string, data: unknown): void {
    if (isChannelEvent(name)) this.#deps.kinds.learn(name, data);
    this.#add({ is: 'event', seq, name: isMessageEvent(name) ? name : '', data: isMessageEvent(name) ? data : undefined });
  }

  /** The session is another one: what was missed is fetched. */
  session(session: Session | undefined): void {
    this.#add({ is: 'session', session });
  }

  /** Fetches what the gateway did not report. */
  fetchMissed(): void {
    this.#add({ is: 'missed' });
  }

  /** Resolves when nothing waits any more. */
  async settled(): Promise<void> {
    while (this.#working !== undefined) await this.#working;
  }

  /** Stops taking, and commits what was handled. */
  async end(): Promise<void> {
    this.#isEnded = true;
    this.#cancelTimer?.();
    await this.settled();
    if (this.#isBroken || !this.#isDirty) return;
    await this.#commit([]).catch((error: unknown) => this.#deps.log.debug({ err: error }, 'Failed to store the position of Discord at the stop'));
  }

  #add(item: Item): void {
    if (this.#isEnded) return;
    if (this.#waiting.length >= mostWaiting) return this.#fail('Too many events wait to be stored');
    this.#waiting.push(item);
    this.#work();
  }

  #work(): void {
    this.#begin(() => this.#handle());
  }

  /** Runs one after the other; items that come at the very end of one are taken up by the next. */
  #begin(run: () => Promise<void>): void {
    this.#working ??= run().finally(() => {
      this.#working = undefined;
      if (this.#waiting.length > 0 && !this.#isEnded) this.#work();
    });
  }

  async #handle(): Promise<void> {
    try {
      while (this.#waiting.length > 0 && !this.#isEnded) {
        const found: Found[] = [];
        for (const item of this.#waiting.splice(0, takenAtOnce)) await this.#one(item, found);
        await this.#store(found);
      }
    } catch (error) {
      if (!(error instanceof ChannelUnknown)) this.#deps.log.warn({ err: error }, 'Failed to store messages of Discord; they are received again');
      this.#fail(error instanceof ChannelUnknown ? error.message : 'The messages could not be stored');
    }
  }

  #fail(text: string): void {
    this.#isBroken = true;
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#waiting.length = 0;
    this.#cancelTimer?.();
    this.#deps.onFailure(text);
  }

  async #one(item: Item, found: Found[]): Promise<void> {
    const { position } = this.#deps;
    this.#isDirty = true;
    if (item.is !== 'event') {
      await this.#store(found.splice(0));
      if (item.is === 'session') position.session = item.session;
      if (item.is === 'session' && item.session === undefined) return;
      await this.#catchUp();
      return this.#commit([]);
    }
    found.push(...(await this.#found(item.name, item.data)));
    if (position.session !== undefined) position.session = { ...position.session, seq: Math.max(item.seq, position.session.seq) };
  }

  /** Commits messages with the position; a position alone only now and then. */
  async #store(found: readonly Found[]): Promise<void> {
    const waitMs = this.#storedAtMs + cursorEveryMs - this.#deps.clock.monotonic();
    if (found.length > 0 || (this.#isDirty && waitMs <= 0)) await this.#commit(found);
    else if (this.#isDirty) this.#cancelTimer ??= this.#deps.clock.after(waitMs, () => this.#storeLater());
  }

  #storeLater(): void {
    this.#cancelTimer = undefined;
    if (!this.#isEnded) this.#begin(() => this.#store([]).catch(() => this.#fail('The position could not be stored')));
  }

  async #commit(found: readonly Found[]): Promise<void> {
    const { sink, position, onCommit, clock } = this.#deps;
    const cursor = position.toCursor();
    await sink.take(
      found.map(({ message }) => message),
      cursor,
    );
    onCommit(cursor);
    this.#isDirty = false;
    this.#storedAtMs = clock.monotonic();
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    for (const { press } of found) if (press !== undefined) void this.#acknowledge(press);
  }

  /** Without it the person who pressed is shown a failure after three seconds. */
  async #acknowledge({ id, token }: Interaction): Promise<void> {
    const { rest, signal, log } = this.#deps;
    const answer = await rest.ask('POST', `/interactions/${id}/${token}/callback`, z.unknown(), {
      signal,
      body: { type: deferredUpdate },
      isWithoutToken: true,
    });
    if (answer.is !== 'answered') log.debug({ reason: answer.text }, 'Failed to acknowledge a pressed button');
  }

  async #found(name: string, data: unknown): Promise<readonly Found[]> {
    const { us, clock } = this.#deps;
    switch (name) {
      case 'MESSAGE_CREATE':
      case 'MESSAGE_UPDATE': {
        const message = Message.safeParse(data).data;
        const isEdit = name === 'MESSAGE_UPDATE';
        // Discord also reports that a preview of a link was added.
        if (message === undefined || (isEdit && message.edited_timestamp == null)) return [];
        this.#deps.onReported(message.channel_id);
        return this.#read(message, await this.#kindOf(message), isEdit);
      }
      case 'MESSAGE_DELETE':
      case 'MESSAGE_DELETE_BULK': {
        const deleted = Deleted.safeParse(data).data;
        return deleted === undefined ? [] : this.#deleted(deleted);
      }
      case 'INTERACTION_CREATE': {
        const press = Interaction.safeParse(data).data;
        if (press === undefined || (press.member?.user ?? press.user)?.id === us) return [];
        const message = pressOf(press, await this.#kindOf(press), clock.now());
        return message === undefined ? [] : [{ message, press }];
      }
      default:
        return [];
    }
  }

  #read(message: Message, kind: ChannelKind, isEdit: boolean): readonly Found[] {
    const { us, position, authors } = this.#deps;
    authors.set(message.id, message.author.id);
    const read = messageOf(message, kind, us, isEdit);
    const isOurs = message.author.id === us || kind.isDirect || read?.mentionsUs === true;
    if (!isEdit) position.saw(message.channel_id, message.id, isOurs);
    return read === undefined ? [] : [{ message: read }];
  }

  async #deleted(deleted: z.output<typeof Deleted>): Promise<readonly Found[]> {
    const { us, authors, clock } = this.#deps;
    const kind = await this.#kindOf(deleted);
    return [deleted.id ?? [], deleted.ids]
      .flat()
      .map((id) => ({ id, author: authors.get(id) ?? '' }))
      .filter(({ author }) => author !== us)
      .map(({ id, author }) => ({ message: deletedOf(id, deleted.channel_id, kind, author, clock.now()) }));
  }

  async #kindOf({ channel_id: channelId, guild_id: guildId }: { readonly channel_id: string; readonly guild_id?: string | null | undefined }) {
    const { kinds, signal } = this.#deps;
    return guildId == null ? { isDirect: true, parentId: undefined, guildId: undefined } : kinds.of(channelId, signal);
  }

  /** Fetches what was written while there was no session. The server knows those messages that it has already. */
  async #catchUp(): Promise<void> {
    const { position, clock } = this.#deps;
    const oldest = snowflakeAt(clock.now() - maxAgeMs);
    // The map changes meanwhile.
    for (const [channelId, last] of Array.from(position.channels)) {
      if (this.#isEnded) throw new ChannelUnknown('The channel stopped');
      const messages = await this.#messagesAfter(channelId, isNewer(last, oldest) ? last : oldest);
      if (messages.length === 0) continue;
      const kind = await this.#deps.kinds.of(channelId, this.#deps.signal);
      const found = messages.flatMap((message) => this.#read(message, kind, false));
      if (found.length > 0) await this.#deps.sink.take(found.map(({ message }) => message));
    }
  }

  async #messagesAfter(channelId: string, after: string): Promise<readonly Message[]> {
    const { rest, signal, clock, log, position } = this.#deps;
    for (;;) {
      const query = { after, limit: String(pageSize) };
      const answer = await rest.ask('GET', `/channels/${channelId}/messages`, z.array(z.unknown()).max(pageSize), { signal, query });
      if (answer.is === 'answered')
        return answer.value.flatMap((one) => Message.safeParse(one).data ?? []).toSorted((a, b) => (isNewer(a.id, b.id) ? 1 : -1));
      if (answer.is === 'refused') {
        log.debug({ channelId, reason: answer.text }, 'Failed to fetch missed messages of a channel of Discord');
        position.channels.delete(channelId);
        return [];
      }
      if (answer.is !== 'limited' || answer.retryAfterMs > longestWaitMs || signal.aborted) throw new ChannelUnknown(answer.text);
      await sleep(clock, answer.retryAfterMs, signal);
    }
  }
}
