import { type JoinedRoom, type MatrixEvent, parseEvents, textIn } from './events.ts';
import { Recent } from './recent.ts';

interface Room {
  joined: number | undefined;
  isEncrypted: boolean;
}

/** Names that are remembered, of all rooms together. */
const maxNames = 2_000;
const longestName = 128;

/** What is known of the rooms that the account has joined. */
export class Rooms {
  /** Our id; set when the homeserver has named it. */
  userId = '';
  /** Our name where a room has no other one. */
  displayName: string | undefined;
  readonly #rooms = new Map<string, Room>();
  readonly #names = new Recent<string>(maxNames);
  /** Direct rooms by user, as clients of the account share them (`m.direct`). */
  #direct: Readonly<Record<string, readonly string[]>> = {};

  /** Learns from an answer of the sync. */
  learn(roomId: string, { state, summary }: Pick<JoinedRoom, 'state' | 'summary'>, timeline: readonly MatrixEvent[]): void {
    const room = this.#rooms.get(roomId) ?? { joined: undefined, isEncrypted: false };
    this.#rooms.set(roomId, room);
    room.joined = summary['m.joined_member_count'] ?? room.joined;
    for (const event of [...parseEvents(state.events), ...timeline]) {
      if (event.type === 'm.room.encryption' && event.state_key === '') room.isEncrypted = true;
      if (event.type === 'm.room.member' && event.state_key !== undefined)
        this.#learnName(roomId, event.state_key, textIn(event.content, 'displayname'));
    }
  }

  /** Learns which rooms are direct. */
  learnDirect(content: Readonly<Record<string, unknown>>): void {
    const direct: Record<string, readonly string[]> = {};
    for (const [userId, rooms] of Object.entries(content))
      if (Array.isArray(rooms)) direct[userId] = rooms.filter((one): one is string => typeof one === 'string');
    this.#direct = direct;
  }

  /** Returns the content of `m.direct` with a room added; undefined when it has it. */
  withDirect(userId: string, roomId: string): Readonly<Record<string, readonly string[]>> | undefined {
    const known = Object.hasOwn(this.#direct, userId) ? (this.#direct[userId] ?? []) : [];
    return known.includes(roomId) ? undefined : { ...this.#direct, [userId]: [...known, roomId] };
  }

  forget(roomId: string): void {
    this.#rooms.delete(roomId);
  }

  isEncrypted(roomId: string): boolean {
    return this.#rooms.get(roomId)?.isEncrypted === true;
  }

  /** Returns with whom a room was meant to be direct; undefined for others. */
  directUser(roomId: string): string | undefined {
    return Object.entries(this.#direct).find(([, rooms]) => rooms.includes(roomId))?.[0];
  }

  /** A direct room that others have joined is not direct any more: they would read the answers. */
  isDirect(roomId: string): boolean {
    const joined = this.#rooms.get(roomId)?.joined;
    if (joined === undefined) return this.directUser(roomId) !== undefined;
    return joined === 2 || (joined < 2 && this.directUser(roomId) !== undefined);
  }

  nameIn(roomId: string, userId: string): string {
    return this.#names.get(`${roomId} ${userId}`) ?? userId;
  }

  /** Names by which people in a room call us. */
  ownNames(roomId: string): readonly string[] {
    const named = this.#names.get(`${roomId} ${this.userId}`);
    return [...new Set([named, this.displayName])].filter((name): name is string => name !== undefined && name !== '');
  }

  #learnName(roomId: string, userId: string, name: string | undefined): void {
    const clean =
      name
        ?.replaceAll(/\p{C}+/gu, '')
        .trim()
        .slice(0, longestName) ?? '';
    if (clean === '') this.#names.delete(`${roomId} ${userId}`);
    else this.#names.set(`${roomId} ${userId}`, clean);
  }
}
