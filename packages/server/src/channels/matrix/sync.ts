import { sleep } from '../../kernel/timers.ts';
import type { AdapterDeps, Ended, ReceivedMessage, Sink } from '../port.ts';
import { type Failure, type MatrixApi, pollMs } from './api.ts';
import type { MatrixKeys } from './config.ts';
import { EventPage, type JoinedRoom, type MatrixEvent, parseEvents, Profile, SyncAnswer, WhoAmI } from './events.ts';
import { isRoomId, isUserId } from './ids.ts';
import { includesUser, Invites } from './invites.ts';
import { messageOf, type Seen } from './message.ts';
import type { Recent } from './recent.ts';
import type { Rooms } from './rooms.ts';

const ofRoom = ['m.room.message', 'm.room.encrypted', 'm.room.redaction', 'm.room.member', 'm.room.encryption'];
/** Messages of one room that are read after a gap. */
const mostOfGap = 100;
const mostPages = 10;
const ofTimeline = 50;
const filter = JSON.stringify({
  presence: { types: [] },
  account_data: { types: ['m.direct'] },
  room: {
    timeline: { types: ofRoom, limit: ofTimeline },
    // The names of those who write, again in each answer: a new process has none.
    state: { types: ['m.room.member', 'm.room.encryption'], lazy_load_members: true, include_redundant_members: true },
    ephemeral: { types: [] },
    account_data: { types: [] },
  },
});
const takenAtOnce = 64;
const againMs = 1_000;
/** Time for joins before the next poll; slower ones continue meanwhile. */
const joinMs = 10_000;
const waitMs = 5_000;
const shortestWaitMs = 1_000;
const longestWaitMs = 300_000;
/** Empty answers that did not wait for an event, after which the next poll waits. */
const mostHasty = 3;
const hastyMs = 500;

export interface SyncDeps extends Pick<AdapterDeps<unknown>, 'clock' | 'log'> {
  readonly api: MatrixApi;
  readonly rooms: Rooms;
  readonly seen: Recent<Seen>;
  /** Encrypted rooms, and rooms that are not direct any more, which the log has named. */
  readonly warned: Recent<true>;
  readonly allowed: MatrixKeys['joinInvitesFrom'];
}

/** One connection: polls the homeserver, from the position that is stored. */
export class Sync {
  readonly #deps: SyncDeps;
  readonly #sink: Sink;
  readonly #signal: AbortSignal;
  readonly #invites: Invites;
  #since: string | undefined;
  #hasty = 0;

  constructor(deps: SyncDeps, signal: AbortSignal, sink: Sink) {
    this.#deps = deps;
    this.#signal = signal;
    this.#sink = sink;
    this.#since = sink.cursor;
    this.#invites = new Invites({ ...deps, signal });
  }

  async run(): Promise<Ended> {
    return (await this.#signIn()) ?? (await this.#poll());
  }

  /** Joins that are under way; they end with the signal. */
  settled(): Promise<void> {
    return this.#invites.settled();
  }

  async #signIn(): Promise<Ended | undefined> {
    const { api, rooms } = this.#deps;
    const signal = this.#signal;
    const outcome = await api.request('GET', ['account', 'whoami'], { signal });
    if (outcome.is !== 'done') return this.#endOf(outcome);
    const userId = WhoAmI.safeParse(outcome.body).data?.user_id ?? '';
    if (!isUserId(userId)) return { ended: 'transient', text: 'The homeserver did not name the account' };
    this.#sink.alive();
    rooms.userId = userId;
    const profile = await api.request('GET', ['profile', userId, 'displayname'], { signal });
    // It is only a name by which people may call us.
    rooms.displayName = profile.is === 'done' ? Profile.safeParse(profile.body).data?.displayname : rooms.displayName;
    return undefined;
  }

  async #poll(): Promise<Ended> {
    for (let isFirst = true; ;) {
      const ended = await this.#pollOnce(isFirst);
      if (ended === 'again') continue;
      if (ended !== undefined) return ended;
      if (isFirst) this.#sink.connected(this.#deps.rooms.userId);
      isFirst = false;
    }
  }

  /** Asks once and stores what came; `again` when the homeserver asks for patience. */
  async #pollOnce(isFirst: boolean): Promise<Ended | 'again' | undefined> {
    const { api, clock, log } = this.#deps;
    const since = this.#since;
    const query = {
      filter,
      timeout: isFirst ? '0' : String(pollMs),
      ...(since !== undefined && { since }),
      // What is known of the rooms is not stored.
      ...(isFirst && { full_state: 'true' }),
    };
    const startedAtMs = clock.monotonic();
    const outcome = await api.request('GET', ['sync'], { query, signal: this.#signal, sync: isFirst ? 'first' : 'poll' });
    if (this.#signal.aborted) return stopped;
    if (outcome.is === 'refused' && outcome.status === 429) {
      this.#sink.alive();
      await sleep(clock, Math.min(Math.max(outcome.retryAfterMs ?? waitMs, shortestWaitMs), longestWaitMs), this.#signal);
      return this.#signal.aborted ? stopped : 'again';
    }
    if (outcome.is === 'refused' && outcome.status === 400 && outcome.errcode !== '' && since !== undefined) {
      log.warn({ reason: outcome.text }, 'Matrix: the homeserver does not know the stored position; messages since then are not received');
      this.#since = undefined;
      return 'again';
    }
    if (outcome.is !== 'done') return this.#endOf(outcome);
    const answer = SyncAnswer.safeParse(outcome.body);
    if (!answer.success) return { ended: 'transient', text: 'The answer of the homeserver does not have the shape of a sync' };
    this.#sink.alive();
    const ended = await this.#accept(answer.data, since);
    if (ended === undefined && !isFirst) await this.#slowDown(answer.data, clock.monotonic() - startedAtMs);
    return ended;
  }

  /** A homeserver that does not wait must not make a busy loop. */
  async #slowDown({ rooms }: SyncAnswer, tookMs: number): Promise<void> {
    const isEmpty = [rooms.join, rooms.invite, rooms.leave].every((part) => Object.keys(part).length === 0);
    this.#hasty = isEmpty && tookMs < hastyMs ? this.#hasty + 1 : 0;
    if (this.#hasty >= mostHasty) await sleep(this.#deps.clock, shortestWaitMs, this.#signal);
  }

  async #accept(
    { next_batch: next, account_data: data, rooms: { join, invite, leave } }: SyncAnswer,
    since: string | undefined,
  ): Promise<Ended | undefined> {
    const { rooms, clock } = this.#deps;
    for (const { type, content } of parseEvents(data.events.map((one) => withSender(one)))) if (type === 'm.direct') rooms.learnDirect(content);
    for (const roomId of Object.keys(leave)) rooms.forget(roomId);
    for (const [roomId, room] of Object.entries(invite)) this.#invites.add(roomId, room);
    const messages: ReceivedMessage[] = [];
    for (const [roomId, room] of Object.entries(join)) {
      if (!isRoomId(roomId)) continue;
      const timeline = parseEvents(room.timeline.events);
      rooms.learn(roomId, room, timeline);
      if (since === undefined) continue;
      const missed = room.timeline.limited ? await this.#readGap(roomId, room, since) : [];
      if (!Array.isArray(missed)) return this.#signal.aborted ? stopped : missed;
      messages.push(...this.#messagesOf(roomId, [...missed, ...timeline]));
    }
    const patience = new AbortController();
    await Promise.race([this.#invites.settled(), sleep(clock, joinMs, AbortSignal.any([this.#signal, patience.signal]))]);
    patience.abort();
    // A poll that ended without an event has nothing to store.
    if ((messages.length > 0 || next !== since) && !(await this.#store(messages, next))) return stopped;
    this.#since = next;
    return undefined;
  }

  /** Reads back what an answer left out, the newest first, to the position that is stored. */
  async #readGap(roomId: string, { timeline }: JoinedRoom, since: string): Promise<MatrixEvent[] | Ended> {
    const { api, log } = this.#deps;
    const found: MatrixEvent[] = [];
    let from = timeline.prev_batch;
    for (let page = 0; from !== undefined && page < mostPages; page += 1) {
      const query = { dir: 'b', from, to: since, limit: String(mostOfGap), filter: JSON.stringify({ types: ofRoom }) };
      const outcome = await api.request('GET', ['rooms', roomId, 'messages'], { query, signal: this.#signal });
      // History that the account may not read is not received later either.
      if (outcome.is === 'refused' && (outcome.status === 403 || outcome.status === 404)) break;
      if (outcome.is !== 'done') return this.#endOf(outcome);
      const answer = EventPage.safeParse(outcome.body).data;
      found.push(...parseEvents(answer?.chunk ?? []));
      from = answer?.chunk.length === 0 ? undefined : answer?.end;
      if (found.length < mostOfGap) continue;
      if (from !== undefined || found.length > mostOfGap) log.warn({ roomId, most: mostOfGap }, 'Matrix: messages of a long gap were not received');
      break;
    }
    return found.slice(0, mostOfGap).toReversed();
  }

  #messagesOf(roomId: string, events: readonly MatrixEvent[]): ReceivedMessage[] {
    const { rooms, seen, clock } = this.#deps;
    const taken = sinceInvited(events, rooms.userId);
    const isRefused = this.#isRefused(roomId);
    return taken.flatMap((event) => {
      if (event.type === 'm.room.encrypted' && event.sender !== rooms.userId)
        this.#warn(roomId, 'Matrix: a message was not read: the room is encrypted');
      const message = messageOf(event, roomId, { rooms, seen, nowMs: clock.now() });
      return message === undefined || isRefused ? [] : [message];
    });
  }

  /** A room to which a user invited us for a direct conversation has become another one: the user may not invite to those. */
  #isRefused(roomId: string): boolean {
    const { rooms, allowed } = this.#deps;
    const user = rooms.directUser(roomId);
    if (user === undefined || rooms.isDirect(roomId) || includesUser(allowed.groups, user)) return false;
    this.#warn(roomId, 'Matrix: messages are ignored: others joined a direct room, and joinInvitesFrom.groups does not have who invited to it');
    return true;
  }

  #warn(roomId: string, text: string): void {
    const { warned, log } = this.#deps;
    if (warned.has(`${roomId} ${text}`)) return;
    warned.set(`${roomId} ${text}`, true);
    log.warn({ roomId }, text);
  }

  /** Stores messages, the position with the last of them; false when the channel stopped before. */
  async #store(messages: readonly ReceivedMessage[], next: string): Promise<boolean> {
    for (let at = 0; ; at += takenAtOnce) {
      const isLast = at + takenAtOnce >= messages.length;
      if (!(await this.#take(messages.slice(at, at + takenAtOnce), isLast ? next : undefined))) return false;
      if (isLast) return true;
    }
  }

  async #take(messages: readonly ReceivedMessage[], cursor: string | undefined): Promise<boolean> {
    const { clock, log } = this.#deps;
    while (!this.#signal.aborted) {
      try {
        await this.#sink.take(messages, cursor);
        return true;
      } catch (error) {
        log.warn({ err: error }, 'Failed to store messages of Matrix; they are tried again');
        await sleep(clock, againMs, this.#signal);
      }
    }
    return false;
  }

  #endOf(failure: Failure): Ended {
    if (this.#signal.aborted) return stopped;
    const isRefused =
      failure.is === 'refused' && (failure.status === 401 || failure.errcode === 'M_USER_DEACTIVATED' || failure.errcode === 'M_USER_LOCKED');
    return { ended: isRefused ? 'unauthorized' : 'transient', text: failure.text };
  }
}

const stopped: Ended = { ended: 'stopped', text: 'Stopped' };

/** Account data has no sender. */
const withSender = (value: unknown): unknown => (typeof value === 'object' && value !== null ? { sender: '', ...value } : value);

/** Leaves out what was said in a room before we were invited to it, or joined it. */
function sinceInvited(events: readonly MatrixEvent[], userId: string): readonly MatrixEvent[] {
  const membershipOf = ({ type, state_key: key, content }: MatrixEvent) =>
    type === 'm.room.member' && key === userId ? content['membership'] : undefined;
  const invited = events.findLastIndex((event) => membershipOf(event) === 'invite');
  if (invited !== -1) return events.slice(invited);
  // A change of our name is a join after a join.
  const joined = events.findIndex((event) => membershipOf(event) === 'join' && event.unsigned?.prev_content?.['membership'] !== 'join');
  return joined === -1 ? events : events.slice(joined);
}
