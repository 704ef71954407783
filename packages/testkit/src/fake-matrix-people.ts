import type { Content, FakeRoom, FakeWorld } from './fake-matrix-world.ts';

/** A message as people see it in a room. */
export interface ShownMessage {
  readonly id: string;
  readonly sender: string;
  readonly type: string;
  readonly body: string;
  readonly html?: string;
  readonly thread?: string;
  readonly replyTo?: string;
  readonly isEdited?: true;
  readonly reactions?: readonly string[];
}

export interface RoomOptions {
  readonly name?: string;
  readonly invite?: readonly string[];
  readonly isDirect?: boolean;
  readonly isEncrypted?: boolean;
  readonly isPublic?: boolean;
  readonly alias?: string;
}

/** An account of the fake homeserver, and what its owner does. */
export interface MatrixAccount {
  readonly userId: string;
  readonly token: string;
  /** Creates a room and returns its id. */
  createRoom(options?: RoomOptions): string;
  invite(roomId: string, userId: string, isDirect?: boolean): void;
  join(roomId: string): void;
  leave(roomId: string): void;
  /** Sends a text, with further content; returns the id of the event. */
  say(roomId: string, text: string, more?: Content): string;
  send(roomId: string, type: string, content: Content): string;
  edit(roomId: string, eventId: string, text: string): string;
  redact(roomId: string, eventId: string): string;
  /** Changes the name that others see, in one room. */
  rename(roomId: string, name: string): void;
  /** Lets somebody administer a room. */
  promote(roomId: string, userId: string): void;
  /** Stores a file and returns its address. */
  upload(bytes: Uint8Array, mediaType: string): string;
}

/** Returns what the owner of an account does. */
export function accountOf(world: FakeWorld, store: (bytes: Uint8Array, mediaType: string) => string, userId: string, token: string): MatrixAccount {
  const send = (roomId: string, type: string, content: Content) => world.send(roomId, userId, { type, content }).event_id;
  return {
    userId,
    token,
    createRoom({ name, invite = [], isDirect = false, isEncrypted = false, isPublic = false, alias } = {}) {
      const state = (type: string, content: Content) => ({ type, stateKey: '', content });
      const { id } = world.createRoom(
        userId,
        [
          state('m.room.join_rules', { join_rule: isPublic ? 'public' : 'invite' }),
          ...(name === undefined ? [] : [state('m.room.name', { name })]),
          ...(isEncrypted ? [state('m.room.encryption', { algorithm: 'm.megolm.v1.aes-sha2' })] : []),
        ],
        alias,
      );
      for (const other of invite) world.invite(id, userId, other, isDirect);
      return id;
    },
    invite: (roomId, other, isDirect = false) => world.invite(roomId, userId, other, isDirect),
    join: (roomId) => void world.join(roomId, userId),
    leave: (roomId) => world.leave(roomId, userId, {}),
    say: (roomId, text, more = {}) => send(roomId, 'm.room.message', { msgtype: 'm.text', body: text, ...more }),
    send,
    edit: (roomId, eventId, text) =>
      send(roomId, 'm.room.message', {
        msgtype: 'm.text',
        body: `* ${text}`,
        'm.new_content': { msgtype: 'm.text', body: text },
        'm.relates_to': { rel_type: 'm.replace', event_id: eventId },
      }),
    redact: (roomId, eventId) => world.send(roomId, userId, { type: 'm.room.redaction', content: {}, redacts: eventId }).event_id,
    rename(roomId, name) {
      world.account(userId).displayName = name;
      world.rename(roomId, userId);
    },
    promote: (roomId, other) =>
      void world.send(roomId, userId, { type: 'm.room.power_levels', stateKey: '', content: { users: { [userId]: 100, [other]: 100 } } }),
    upload: store,
  };
}

/** Returns the messages of a room as people see them. */
export function shownMessages({ events }: FakeRoom): ShownMessage[] {
  const shown = new Map<string, ShownMessage>();
  const reactions = new Map<string, string[]>();
  for (const { type, event_id: id, sender, content } of events) {
    const relates = content['m.relates_to'] as Content | undefined;
    const target = String(relates?.['event_id']);
    if (type === 'm.reaction' && relates !== undefined) reactions.set(target, [...(reactions.get(target) ?? []), `${relates['key']} ${sender}`]);
    if (type !== 'm.room.message' || typeof content['body'] !== 'string') continue;
    const isEdit = relates?.['rel_type'] === 'm.replace';
    const original = shown.get(target);
    if (isEdit && original?.sender === sender) shown.set(target, { ...original, ...textOf(content['m.new_content'] as Content), isEdited: true });
    if (isEdit) continue;
    const answered = relates?.['rel_type'] === 'm.thread' && relates['is_falling_back'] === true ? undefined : relates?.['m.in_reply_to'];
    shown.set(id, {
      id,
      sender,
      ...textOf(content),
      ...(relates?.['rel_type'] === 'm.thread' && { thread: target }),
      ...(answered !== undefined && { replyTo: (answered as { readonly event_id: string }).event_id }),
    });
  }
  return [...shown.values()].map((message) => ({ ...message, ...(reactions.has(message.id) && { reactions: reactions.get(message.id) ?? [] }) }));
}

function textOf(content: Content): Pick<ShownMessage, 'type' | 'body' | 'html'> {
  const html = content['formatted_body'];
  return { type: String(content['msgtype']), body: String(content['body']), ...(typeof html === 'string' && { html }) };
}
