import { randomBytes } from 'node:crypto';

export type Content = Readonly<Record<string, unknown>>;

/** An error of the client-server API. */
export class MatrixError extends Error {
  readonly status: number;
  readonly body: object;

  constructor(status: number, errcode: string, text: string, more: object = {}) {
    super(`${errcode}: ${text}`);
    this.status = status;
    this.body = { errcode, error: text, ...more };
  }
}

export interface FakeEvent {
  readonly type: string;
  readonly event_id: string;
  readonly room_id: string;
  readonly sender: string;
  readonly origin_server_ts: number;
  readonly state_key?: string;
  content: Content;
  redacts?: string;
  readonly unsigned: Record<string, unknown>;
  /** Position in the order of all events of the server. */
  readonly position: number;
}

export interface NewEvent {
  readonly type: string;
  readonly content: Content;
  readonly stateKey?: string;
  readonly redacts?: string;
  readonly transactionId?: string | undefined;
}

interface Account {
  displayName: string;
  readonly data: Map<string, { readonly content: Content; readonly position: number }>;
}

export class FakeRoom {
  readonly id: string;
  readonly events: FakeEvent[] = [];

  constructor(id: string) {
    this.id = id;
  }

  /** Returns the state after an event, the current one by default. */
  stateAt(position = Number.POSITIVE_INFINITY): Map<string, FakeEvent> {
    const state = new Map<string, FakeEvent>();
    for (const event of this.events)
      if (event.state_key !== undefined && event.position <= position) state.set(`${event.type} ${event.state_key}`, event);
    return state;
  }

  membership(userId: string, position?: number): string | undefined {
    const membership = this.stateAt(position).get(`m.room.member ${userId}`)?.content['membership'];
    return typeof membership === 'string' ? membership : undefined;
  }

  count(membership: string): number {
    return [...this.stateAt().values()].filter(({ type, content }) => type === 'm.room.member' && content['membership'] === membership).length;
  }

  find(eventId: string): FakeEvent {
    const event = this.events.find((one) => one.event_id === eventId);
    if (event === undefined) throw new MatrixError(404, 'M_NOT_FOUND', 'Event not found');
    return event;
  }
}

const mostEvent = 65_536;
const serverName = 'fake.test';

/** What a homeserver stores: accounts and rooms, with the rules of who may do what. */
export class FakeWorld {
  readonly accounts = new Map<string, Account>();
  readonly rooms = new Map<string, FakeRoom>();
  readonly aliases = new Map<string, string>();
  position = 0;
  readonly #waiting = new Set<() => void>();

  addAccount(name: string, displayName: string): string {
    const userId = `@${name}:${serverName}`;
    this.accounts.set(userId, { displayName, data: new Map() });
    return userId;
  }

  account(userId: string): Account {
    const account = this.accounts.get(userId);
    if (account === undefined) throw new MatrixError(404, 'M_NOT_FOUND', 'User not found');
    return account;
  }

  setAccountData(userId: string, type: string, content: Content): void {
    this.position += 1;
    this.account(userId).data.set(type, { content, position: this.position });
    this.wake();
  }

  createRoom(creator: string, initial: readonly NewEvent[], alias?: string): FakeRoom {
    const room = new FakeRoom(`!${randomBytes(9).toString('base64url')}:${serverName}`);
    this.rooms.set(room.id, room);
    if (alias !== undefined) this.aliases.set(`#${alias}:${serverName}`, room.id);
    this.#append(room, creator, { type: 'm.room.create', stateKey: '', content: { room_version: '10', creator } });
    this.#append(room, creator, this.#member(creator, { membership: 'join' }));
    this.#append(room, creator, { type: 'm.room.power_levels', stateKey: '', content: { users: { [creator]: 100 } } });
    for (const event of initial) this.#append(room, creator, event);
    return room;
  }

  room(idOrAlias: string): FakeRoom {
    const room = this.rooms.get(this.aliases.get(idOrAlias) ?? idOrAlias);
    if (room === undefined) throw new MatrixError(404, 'M_NOT_FOUND', 'Unknown room');
    return room;
  }

  /** Adds an event of a member, when its power suffices. */
  send(roomId: string, sender: string, event: NewEvent): FakeEvent {
    const room = this.#joinedRoom(roomId, sender);
    if (event.stateKey !== undefined) this.#needPower(room, sender, 50);
    const target = event.redacts === undefined ? undefined : room.find(event.redacts);
    if (target !== undefined && target.sender !== sender) this.#needPower(room, sender, 50);
    this.#refuseDuplicate(room, sender, event);
    const added = this.#append(room, sender, event);
    if (target !== undefined) {
      target.content = {};
      target.unsigned['redacted_because'] = added;
    }
    return added;
  }

  invite(roomId: string, sender: string, userId: string, isDirect = false): void {
    const room = this.#joinedRoom(roomId, sender);
    this.account(userId);
    if (['join', 'ban'].includes(room.membership(userId) ?? '')) throw new MatrixError(403, 'M_FORBIDDEN', `${userId} is already in the room`);
    this.#append(room, sender, this.#member(userId, { membership: 'invite', ...(isDirect && { is_direct: true }) }));
  }

  join(roomId: string, userId: string): FakeRoom {
    const room = this.room(roomId);
    const isPublic = room.stateAt().get('m.room.join_rules ')?.content['join_rule'] === 'public';
    const membership = room.membership(userId);
    if (membership === 'join') return room;
    if (membership === 'ban' || (membership !== 'invite' && !isPublic)) throw new MatrixError(403, 'M_FORBIDDEN', 'You are not invited to this room');
    this.#append(room, userId, this.#member(userId, { membership: 'join' }));
    return room;
  }

  leave(roomId: string, userId: string, content: Content): void {
    const room = this.room(roomId);
    if (!['join', 'invite'].includes(room.membership(userId) ?? '')) throw new MatrixError(403, 'M_FORBIDDEN', 'You are not in this room');
    this.#append(room, userId, this.#member(userId, { membership: 'leave', ...content }));
  }

  /** Removes or bans somebody. */
  expel(roomId: string, sender: string, userId: string, membership: 'leave' | 'ban', content: Content): void {
    const room = this.#joinedRoom(roomId, sender);
    this.#needPower(room, sender, 50);
    if (membership === 'leave' && !['join', 'invite'].includes(room.membership(userId) ?? ''))
      throw new MatrixError(403, 'M_FORBIDDEN', 'The target is not in the room');
    this.#append(room, sender, this.#member(userId, { membership, ...content }));
  }

  /** Shows the name of an account in a room. */
  rename(roomId: string, userId: string): void {
    this.#append(this.#joinedRoom(roomId, userId), userId, this.#member(userId, { membership: 'join' }));
  }

  /** Calls once at the next change; returns how to cancel it. */
  onChange(run: () => void): () => void {
    this.#waiting.add(run);
    return () => this.#waiting.delete(run);
  }

  wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const run of waiting) run();
  }

  #joinedRoom(roomId: string, userId: string): FakeRoom {
    const room = this.room(roomId);
    if (room.membership(userId) !== 'join') throw new MatrixError(403, 'M_FORBIDDEN', 'You are not in this room');
    return room;
  }

  #needPower(room: FakeRoom, userId: string, least: number): void {
    const users = room.stateAt().get('m.room.power_levels ')?.content['users'] as Readonly<Record<string, number>> | undefined;
    if ((users?.[userId] ?? 0) < least) throw new MatrixError(403, 'M_FORBIDDEN', 'You do not have the power level for this');
  }

  #refuseDuplicate(room: FakeRoom, sender: string, { type, content }: NewEvent): void {
    const same = JSON.stringify(content['m.relates_to']);
    if (type !== 'm.reaction') return;
    if (room.events.some((one) => one.type === type && one.sender === sender && JSON.stringify(one.content['m.relates_to']) === same))
      throw new MatrixError(400, 'M_DUPLICATE_ANNOTATION', 'The same reaction is there already');
  }

  #member(userId: string, content: Content): NewEvent {
    return { type: 'm.room.member', stateKey: userId, content: { displayname: this.account(userId).displayName, ...content } };
  }

  #append(room: FakeRoom, sender: string, { type, content, stateKey, redacts, transactionId }: NewEvent): FakeEvent {
    const earlier = stateKey === undefined ? undefined : room.stateAt().get(`${type} ${stateKey}`);
    const event: FakeEvent = {
      type,
      event_id: `$${randomBytes(32).toString('base64url')}`,
      room_id: room.id,
      sender,
      origin_server_ts: Date.now(),
      content,
      ...(stateKey !== undefined && { state_key: stateKey }),
      ...(redacts !== undefined && { redacts }),
      unsigned: {
        ...(earlier !== undefined && { prev_content: earlier.content, replaces_state: earlier.event_id }),
        ...(transactionId !== undefined && { transaction_id: transactionId }),
      },
      position: this.position + 1,
    };
    if (Buffer.byteLength(JSON.stringify(event)) > mostEvent) throw new MatrixError(413, 'M_TOO_LARGE', 'The event is too large');
    this.position += 1;
    room.events.push(event);
    this.wake();
    return event;
  }
}
