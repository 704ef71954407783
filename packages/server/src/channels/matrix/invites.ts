import { sleep } from '../../kernel/timers.ts';
import type { AdapterDeps } from '../port.ts';
import type { MatrixApi, Outcome } from './api.ts';
import type { MatrixKeys } from './config.ts';
import { type InvitedRoom, type MatrixEvent, parseEvents } from './events.ts';
import { isRoomId, isUserId } from './ids.ts';
import type { Rooms } from './rooms.ts';

const maxTries = 3;
const againMs = 2_000;
const longestPauseMs = 60_000;
/** Invitations that are answered at the same time; more are left to the operator. */
const most = 32;
const noEncryption = 'This account does not read encrypted rooms. Invite it to a room without encryption.';

/** Whether a list of `joinInvitesFrom` has a user. */
export function includesUser(list: readonly string[], userId: string): boolean {
  const server = userId.slice(userId.indexOf(':') + 1);
  return list.some((entry) => entry === '*' || entry === userId || entry === `*:${server}`);
}

export interface InvitesDeps {
  readonly api: MatrixApi;
  readonly rooms: Rooms;
  readonly allowed: MatrixKeys['joinInvitesFrom'];
  readonly clock: AdapterDeps<unknown>['clock'];
  readonly log: AdapterDeps<unknown>['log'];
  readonly signal: AbortSignal;
}

/** Accepts invitations of those who may invite, declines those to encrypted rooms, and leaves the others open. */
export class Invites {
  readonly #deps: InvitesDeps;
  readonly #running = new Map<string, Promise<void>>();

  constructor(deps: InvitesDeps) {
    this.#deps = deps;
  }

  add(roomId: string, { invite_state: state }: InvitedRoom): void {
    const { rooms, allowed, log } = this.#deps;
    const events = parseEvents(state.events);
    const own = events.find((event) => event.type === 'm.room.member' && event.state_key === rooms.userId);
    if (own === undefined || !isRoomId(roomId) || !isUserId(own.sender) || this.#running.has(roomId)) return;
    const isDirect = own.content['is_direct'] === true;
    const from = { roomId, inviter: own.sender, isDirect };
    if (!includesUser(isDirect ? allowed.direct : allowed.groups, own.sender))
      return log.warn(from, 'Matrix: an invitation was not accepted: joinInvitesFrom does not permit it');
    if (this.#running.size >= most) return log.warn(from, 'Matrix: an invitation was not accepted: too many came at once');
    const answered = this.#answer(roomId, own, events).finally(() => this.#running.delete(roomId));
    this.#running.set(roomId, answered);
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  async #answer(roomId: string, own: MatrixEvent, events: readonly MatrixEvent[]): Promise<void> {
    const { api, log, signal } = this.#deps;
    const from = { roomId, inviter: own.sender };
    if (events.some(({ type }) => type === 'm.room.encryption')) {
      log.warn(from, 'Matrix: an invitation was declined: the room is encrypted');
      await this.#insist(() => api.request('POST', ['rooms', roomId, 'leave'], { body: { reason: noEncryption }, signal }));
      return;
    }
    // Before the join: it may be answered by messages.
    if (own.content['is_direct'] === true) await this.#markDirect(roomId, own.sender);
    const joined = await this.#insist(() => api.request('POST', ['rooms', roomId, 'join'], { body: {}, signal }));
    if (joined.is !== 'done') log.warn({ ...from, reason: joined.text }, 'Matrix: failed to join a room; invite the account again');
  }

  /** Remembers it with the account, as other clients of it do. */
  async #markDirect(roomId: string, userId: string): Promise<void> {
    const { api, rooms, signal, log } = this.#deps;
    const content = rooms.withDirect(userId, roomId);
    if (content === undefined) return;
    rooms.learnDirect(content);
    const stored = await this.#insist(() => api.request('PUT', ['user', rooms.userId, 'account_data', 'm.direct'], { body: content, signal }));
    if (stored.is !== 'done') log.warn({ roomId, reason: stored.text }, 'Matrix: failed to mark a room as direct');
  }

  async #insist(ask: () => Promise<Outcome>): Promise<Outcome> {
    const { clock, signal } = this.#deps;
    for (let tries = 1; ; tries += 1) {
      const outcome = await ask();
      const isFinal = outcome.is === 'done' || (outcome.is === 'refused' && outcome.status < 500 && outcome.status !== 429);
      if (isFinal || tries === maxTries || signal.aborted) return outcome;
      const waitMs = (outcome.is === 'refused' ? outcome.retryAfterMs : undefined) ?? againMs;
      await sleep(clock, Math.min(waitMs, longestPauseMs), signal);
    }
  }
}
