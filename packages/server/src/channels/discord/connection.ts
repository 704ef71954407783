import { DefaultDeviceProperty, Encoding, type FetchingStrategyOptions, type SessionInfo, WebSocketShard, WebSocketShardEvents } from '@discordjs/ws';
import { sleep } from '../../kernel/timers.ts';
import type { AdapterDeps, Ended, Sink } from '../port.ts';
import type { DiscordKeys } from './config.ts';
import { findDeafChannel } from './deafness.ts';
import { checkedGatewayUrl } from './gateway-url.ts';
import { Intake } from './intake.ts';
import type { ChannelKinds } from './channel-kinds.ts';
import { Position, type Session } from './position.ts';
import type { RecentMap } from './recent-map.ts';
import type { DiscordRest } from './rest.ts';

type Payload = Parameters<WebSocketShard['send']>[0];
export type Presence = NonNullable<FetchingStrategyOptions['initialPresence']>;

/** What outlives a connection. */
export interface Memory {
  /** The cursor that was committed last. */
  cursor: string | undefined;
  /** Consecutive resumes that failed. */
  failedResumes: number;
  presence: Presence | null;
  /** Authors of messages: Discord does not say whose a deleted message was. */
  readonly authors: RecentMap<string>;
  /** Channels whose messages a connection did not report, and no later one has. */
  readonly deaf: Set<string>;
}

export interface ConnectionDeps extends AdapterDeps<DiscordKeys> {
  readonly rest: DiscordRest;
  readonly kinds: ChannelKinds;
  readonly memory: Memory;
  readonly sink: Sink;
  readonly signal: AbortSignal;
  readonly us: { readonly id: string; readonly username: string };
  readonly gatewayUrl: string;
}

/** Guilds, messages in guilds, direct messages, and the content of messages. */
const intents = (1 << 0) | (1 << 9) | (1 << 12) | (1 << 15);
const handshakeMs = 15_000;
const helloMs = 20_000;
const readyMs = 60_000;
/** We ask for a sign of life more often than the gateway wants: a dead connection is noticed within 45 s. */
const lifeMs = 30_000;
const answerMs = 15_000;
const goodbyeMs = 1_000;
const maxResumes = 3;
const mostDeaf = 200;
/** Every code but 1000 and 1001 keeps the session. */
const keepSession = 4_200;
/** The largest frame is a guild with all its channels and roles. */
const maxFrame = 16_777_216;
const opHeartbeat = 1;
const opPresence = 3;

/** The session is over; the next connection begins one. */
const sessionEnds: ReadonlySet<number> = new Set([1_000, 4_007, 4_009]);
const fatal: ReadonlyMap<number, string> = new Map([
  [4_004, 'Discord refuses the token (4004): create a new one on the page "Bot" of the application'],
  [4_010, 'Discord refuses the shard (4010)'],
  [4_011, 'The bot is in too many guilds for one connection (4011)'],
  [4_012, 'Discord does not offer this version of the gateway any more (4012)'],
  [4_013, 'Discord does not know an intent (4013)'],
  [4_014, 'Discord refuses an intent (4014): switch on "Message Content Intent" on the page "Bot" of the application'],
]);

const never = <Value>(): Promise<Value> => new Promise(() => {});

/** One connected time, from the first socket to the end: Discord asks for a new socket now and then, and the session continues on it. */
export class Connection {
  readonly #deps: ConnectionDeps;
  readonly #ended = Promise.withResolvers<Ended>();
  readonly #intake: Intake;
  readonly #position: Position;
  readonly #shard: WebSocketShard;
  /** The session as the gateway knows it: its sequence includes events that are not handled yet. */
  #live: Session | undefined;
  #isOver = false;
  /** The next question of the library for the session begins a socket. */
  #isConnecting = true;
  #isOpen = false;
  #isReady = false;
  #sessionEnded = false;
  #unreadySockets = 0;
  #socketError = '';
  #closing: Promise<void> | undefined;
  readonly #over = new AbortController();
  #listening: Promise<void> | undefined;
  #cancelTimer = () => {};

  constructor(deps: ConnectionDeps) {
    this.#deps = deps;
    this.#position = new Position(deps.memory.cursor);
    this.#intake = new Intake({
      ...deps,
      us: deps.us.id,
      authors: deps.memory.authors,
      position: this.#position,
      onCommit: (cursor) => {
        deps.memory.cursor = cursor;
      },
      onReported: (channelId) => void deps.memory.deaf.delete(channelId),
      onFailure: (text) => this.#end({ ended: 'transient', text }),
    });
    this.#shard = this.#createShard();
  }

  /** Resolves when the connection has ended and what was received is stored. */
  async run(): Promise<Ended> {
    const { signal, clock } = this.#deps;
    if (signal.aborted) return { ended: 'stopped', text: 'Stopped' };
    const stop = () => this.#end({ ended: 'stopped', text: 'Stopped' });
    signal.addEventListener('abort', stop, { once: true });
    this.#expectReady();
    this.#shard.connect().catch(() => {});
    try {
      const ended = await this.#ended.promise;
      await this.#intake.end();
      await this.#listening;
      const waited = new AbortController();
      await Promise.race([this.#closing, sleep(clock, goodbyeMs, waited.signal)]);
      waited.abort();
      return ended;
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  /** Shows a status; returns whether it was sent. */
  async show(presence: Presence): Promise<boolean> {
    if (!this.#isReady || this.#isOver) return false;
    return this.#shard.send({ op: opPresence, d: presence }).then(
      () => true,
      () => false,
    );
  }

  #createShard(): WebSocketShard {
    const { config, memory, gatewayUrl } = this.#deps;
    const shard = new WebSocketShard(
      {
        options: {
          compression: null,
          encoding: Encoding.JSON,
          handshakeTimeout: handshakeMs,
          helloTimeout: helloMs,
          readyTimeout: readyMs,
          identifyProperties: { browser: DefaultDeviceProperty, device: DefaultDeviceProperty, os: process.platform },
          get initialPresence() {
            return memory.presence;
          },
          intents,
          largeThreshold: null,
          token: config.token,
          useIdentifyCompression: false,
          version: '10',
          shardCount: 1,
          gatewayInformation: {
            url: gatewayUrl,
            shards: 1,
            session_start_limit: { total: 1, remaining: 1, reset_after: 0, max_concurrency: 1 },
          },
        },
        retrieveSessionInfo: () => this.#sessionInfo(),
        updateSessionInfo: (_shard, info) => this.#update(info),
        // One connection of one bot never identifies more often than `Instance` connects.
        waitForIdentify: () => (this.#isOver ? never() : Promise.resolve()),
      },
      0,
    );
    guard(shard, () => this.#end({ ended: 'transient', text: 'The gateway sent something that cannot be read' }));
    shard.on(WebSocketShardEvents.Hello, () => this.#greeted());
    shard.on(WebSocketShardEvents.Ready, () => this.#ready());
    shard.on(WebSocketShardEvents.Resumed, () => this.#ready());
    shard.on(WebSocketShardEvents.HeartbeatComplete, () => this.#lives());
    shard.on(WebSocketShardEvents.Dispatch, ({ s: seq, t: name, d: data }) => this.#intake.event(seq, name, data));
    shard.on(WebSocketShardEvents.Closed, (code) => this.#closed(code));
    shard.on(WebSocketShardEvents.SocketError, (error) => (this.#socketError = 'code' in error ? String(error.code) : ''));
    // The codes of `Closed` say it.
    shard.on(WebSocketShardEvents.Error, () => {});
    return shard;
  }

  /** Answers the library, which asks before it connects and at each heartbeat. One that has to stop waits for ever: it offers no other way. */
  async #sessionInfo(): Promise<SessionInfo | null> {
    if (this.#isOver) return never();
    if (this.#isConnecting) {
      this.#isConnecting = false;
      // What was received and is not stored yet must not come twice.
      await this.#intake.settled();
      if (this.#isOver) return never();
      this.#live = this.#resumable();
      if (this.#live !== undefined) this.#deps.memory.failedResumes += 1;
    }
    const live = this.#live;
    return live === undefined ? null : { sessionId: live.id, resumeURL: live.url, sequence: live.seq, shardId: 0, shardCount: 1 };
  }

  #resumable(): Session | undefined {
    const { session } = this.#position;
    const { config, memory } = this.#deps;
    if (session === undefined) return undefined;
    const url = checkedGatewayUrl(session.url, config.apiUrl);
    return url === undefined || memory.failedResumes >= maxResumes ? undefined : { ...session, url };
  }

  #update(info: SessionInfo | null): void {
    if (this.#isOver) return;
    if (info === null) this.#endSession();
    else {
      const session = { id: info.sessionId, url: info.resumeURL, seq: info.sequence };
      if (this.#live?.id !== session.id) this.#intake.session(session);
      this.#live = session;
    }
  }

  #endSession(): void {
    this.#live = undefined;
    this.#sessionEnded = true;
    this.#intake.session(undefined);
  }

  #greeted(): void {
    this.#isOpen = true;
    if (this.#isOver) this.#close();
  }

  #ready(): void {
    const { memory, sink, us } = this.#deps;
    if (this.#isOver) return;
    memory.failedResumes = 0;
    this.#isReady = true;
    this.#sessionEnded = false;
    this.#unreadySockets = 0;
    this.#lives();
    sink.connected(us.username);
    this.#listening ??= this.#listen();
  }

  /** Fetches messages that the gateway does not report; the first of a channel also ends the session, which may be at fault. */
  async #listen(): Promise<void> {
    const { memory, rest, clock, log } = this.#deps;
    const { signal } = this.#over;
    const settled = () => this.#intake.settled();
    for (;;) {
      const channelId = await findDeafChannel({ clock, rest, position: this.#position, settled, signal });
      if (channelId === undefined) return;
      if (!memory.deaf.has(channelId)) {
        if (memory.deaf.size >= mostDeaf) memory.deaf.clear();
        memory.deaf.add(channelId);
        // The next session begins with what was missed.
        memory.failedResumes = maxResumes;
        return this.#end({ ended: 'transient', text: 'Discord did not report a message that its history has' });
      }
      log.warn({ channelId }, 'Discord does not report messages of a channel; they are fetched');
      this.#intake.fetchMissed();
    }
  }

  #lives(): void {
    if (this.#isOver || !this.#isReady) return;
    this.#deps.sink.alive();
    this.#timer(lifeMs, () => {
      this.#shard.send({ op: opHeartbeat, d: this.#live?.seq ?? null } satisfies Payload).catch(() => {});
      this.#timer(answerMs, () => this.#end({ ended: 'transient', text: 'The gateway does not answer any more' }));
    });
  }

  #expectReady(): void {
    this.#timer(readyMs, () => this.#end({ ended: 'transient', text: `The gateway did not begin a session within ${readyMs / 1_000} s` }));
  }

  /** A socket is closed. The library connects again, which is what we want of a session that was in use. */
  #closed(code: number): void {
    if (this.#isOver) return;
    const reason = fatal.get(code);
    if (reason !== undefined) return this.#end({ ended: 'unauthorized', text: reason });
    const wasReady = this.#isReady;
    this.#isOpen = false;
    this.#isReady = false;
    this.#isConnecting = true;
    if (sessionEnds.has(code)) this.#endSession();
    if (!wasReady) this.#unreadySockets += 1;
    // A session that was refused is followed by a new one at once; every other failure waits for its time.
    if (wasReady || (this.#sessionEnded && this.#unreadySockets === 1)) return this.#expectReady();
    const cause = this.#socketError === '' ? `the gateway closed the connection (${code})` : this.#socketError;
    this.#end({ ended: 'transient', text: `No session with the gateway: ${cause}` });
  }

  #timer(ms: number, run: () => void): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#deps.clock.after(ms, run);
  }

  #end(ended: Ended): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#over.abort();
    this.#isReady = false;
    this.#cancelTimer();
    // A socket that is not open yet ends by its own deadline, or when it is greeted: closing it earlier leaves it without a listener for errors.
    if (this.#isOpen) this.#close();
    this.#ended.resolve(ended);
  }

  #close(): void {
    this.#closing ??= this.#shard.destroy({ code: keepSession, reason: 'Stopping' }).catch(() => {});
  }
}

/**
 * Ends the connection at a frame that the library cannot handle or that is too large. It handles each frame without a listener for its rejection,
 * which would stop the daemon.
 */
function guard(shard: WebSocketShard, onFailure: () => void): void {
  const handle: unknown = Reflect.get(shard, 'onMessage');
  if (typeof handle !== 'function') throw new TypeError('@discordjs/ws has another form than expected');
  Reflect.set(shard, 'onMessage', async (data: unknown, isBinary: boolean) => {
    try {
      const size = typeof data === 'string' ? data.length : data instanceof ArrayBuffer ? data.byteLength : 0;
      if (size > maxFrame) return onFailure();
      await handle.call(shard, data, isBinary);
    } catch {
      onFailure();
    }
  });
}
