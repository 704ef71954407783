import { type Content, type FakeEvent, type FakeRoom, type FakeWorld, MatrixError } from './fake-matrix-world.ts';

interface PartFilter {
  readonly types?: readonly string[];
  readonly limit?: number;
  readonly lazy_load_members?: boolean;
}

export interface SyncFilter {
  readonly account_data?: PartFilter;
  readonly room?: { readonly timeline?: PartFilter; readonly state?: PartFilter };
}

const passes = (type: string, { types }: PartFilter = {}): boolean =>
  types === undefined || types.some((one) => one === type || (one.endsWith('*') && type.startsWith(one.slice(0, -1))));

/** Parses a position of the timeline; undefined for none. */
export function positionIn(token: string | null): number | undefined {
  if (token === null) return undefined;
  if (!/^s\d+$/.test(token)) throw new MatrixError(400, 'M_INVALID_PARAM', 'Invalid stream token');
  return Number(token.slice(1));
}

/** Returns an event as clients see it, with its latest version. */
export function shownEvent(room: FakeRoom, event: FakeEvent): object {
  const { position: _position, ...rest } = event;
  const edits = room.events.filter((one) => {
    const relates = one.content['m.relates_to'] as { readonly rel_type?: string; readonly event_id?: string } | undefined;
    return relates?.rel_type === 'm.replace' && relates.event_id === event.event_id && one.sender === event.sender;
  });
  const { position: _other, ...latest } = edits.at(-1) ?? event;
  return edits.length === 0 ? rest : { ...rest, unsigned: { ...rest.unsigned, 'm.relations': { 'm.replace': latest } } };
}

export interface SyncQuery {
  readonly userId: string;
  readonly since: number | undefined;
  readonly isFull: boolean;
  readonly filter: SyncFilter;
}

/** Returns what happened since a position; `isEmpty`: a long poll would wait. */
export function syncAnswer(world: FakeWorld, query: SyncQuery): { readonly isEmpty: boolean; readonly body: object } {
  const { userId, since = -1, filter } = query;
  const join: Record<string, object> = {};
  const invite: Record<string, object> = {};
  const leave: Record<string, object> = {};
  for (const [roomId, room] of world.rooms) {
    const own = room.stateAt().get(`m.room.member ${userId}`);
    const isChanged = own !== undefined && own.position > since;
    const membership = own?.content['membership'];
    if (membership === 'join') {
      const shown = joinedRoom(room, query);
      if (shown !== undefined) join[roomId] = shown;
    } else if (membership === 'invite' && isChanged) invite[roomId] = { invite_state: { events: strippedState(room, userId) } };
    else if (isChanged && since >= 0 && own !== undefined)
      leave[roomId] = { timeline: { events: [shownEvent(room, own)], limited: false, prev_batch: `s${own.position - 1}` } };
  }
  const data = [...world.account(userId).data].filter(
    ([type, { position }]) => (query.isFull || position > since) && passes(type, filter.account_data),
  );
  return {
    isEmpty: [join, invite, leave].every((rooms) => Object.keys(rooms).length === 0) && data.length === 0,
    body: {
      next_batch: `s${world.position}`,
      account_data: { events: data.map(([type, { content }]) => ({ type, content })) },
      rooms: { join, invite, leave },
      device_one_time_keys_count: {},
    },
  };
}

function joinedRoom(room: FakeRoom, { userId, since = -1, isFull, filter }: SyncQuery): object | undefined {
  const isNew = since < 0 || room.membership(userId, since) !== 'join';
  const all = room.events.filter(({ type, position }) => (isNew || position > since) && passes(type, filter.room?.timeline));
  if (all.length === 0 && !isNew && !isFull && !room.events.some(({ position, state_key: key }) => position > since && key !== undefined))
    return undefined;
  const most = filter.room?.timeline?.limit ?? 10;
  const timeline = all.slice(-most);
  const start = timeline[0]?.position ?? Number.POSITIVE_INFINITY;
  const before = room.stateAt(start - 1);
  const senders = new Set([userId, ...timeline.map(({ sender }) => sender)]);
  const isLazy = filter.room?.state?.lazy_load_members === true;
  const state = [...before.values()].filter(
    ({ type, position, state_key: key = '' }) =>
      (isNew || isFull || position > since || (isLazy && type === 'm.room.member' && senders.has(key))) &&
      passes(type, filter.room?.state) &&
      (!isLazy || type !== 'm.room.member' || senders.has(key)),
  );
  const membersChanged = room.events.some(({ type, position }) => type === 'm.room.member' && position > since);
  const summary =
    isLazy && (isNew || isFull || membersChanged)
      ? { 'm.joined_member_count': room.count('join'), 'm.invited_member_count': room.count('invite'), 'm.heroes': [] }
      : {};
  return {
    timeline: {
      events: timeline.map((event) => shownEvent(room, event)),
      limited: all.length > most,
      prev_batch: `s${Math.min(start, room.events.at(-1)?.position ?? 0) - 1}`,
    },
    state: { events: state.map((event) => shownEvent(room, event)) },
    summary,
    ephemeral: { events: [] },
    account_data: { events: [] },
    unread_notifications: { highlight_count: 0, notification_count: 0 },
  };
}

const stripped = new Set(['m.room.create', 'm.room.name', 'm.room.join_rules', 'm.room.encryption', 'm.room.canonical_alias']);

function strippedState(room: FakeRoom, userId: string): object[] {
  return [...room.stateAt().values()]
    .filter(({ type, state_key: key }) => stripped.has(type) || (type === 'm.room.member' && key === userId))
    .map(({ type, sender, state_key: key, content }) => ({ type, sender, state_key: key, content }));
}

/** Returns a page of the events of a room. */
export function messagesPage(room: FakeRoom, query: URLSearchParams): object {
  const isBack = query.get('dir') !== 'f';
  const from = positionIn(query.get('from')) ?? (isBack ? Number.MAX_SAFE_INTEGER : 0);
  const to = positionIn(query.get('to'));
  const filter = JSON.parse(query.get('filter') ?? '{}') as PartFilter;
  const matching = room.events.filter(
    ({ type, position }) =>
      passes(type, filter) && (isBack ? position <= from && position > (to ?? -1) : position > from && position <= (to ?? Number.MAX_SAFE_INTEGER)),
  );
  const ordered = isBack ? matching.toReversed() : matching;
  const chunk = ordered.slice(0, Math.min(Number(query.get('limit') ?? 10), 100));
  const last = chunk.at(-1);
  return {
    start: `s${Math.min(from, room.events.at(-1)?.position ?? 0)}`,
    chunk: chunk.map((event) => shownEvent(room, event)),
    ...(last !== undefined && ordered.length > chunk.length && { end: `s${isBack ? last.position - 1 : last.position}` }),
    state: [],
  };
}

/** Returns a page of the events that relate to one, the newest first. */
export function relationsPage(
  room: FakeRoom,
  eventId: string,
  relType: string | undefined,
  type: string | undefined,
  query: URLSearchParams,
): object {
  room.find(eventId);
  const from = positionIn(query.get('from')) ?? Number.MAX_SAFE_INTEGER;
  const ordered = room.events
    .filter((event) => {
      const relates = event.content['m.relates_to'] as Content | undefined;
      return (
        relates?.['event_id'] === eventId &&
        (relType === undefined || relates['rel_type'] === relType) &&
        (type === undefined || event.type === type) &&
        event.position <= from
      );
    })
    .toReversed();
  const chunk = ordered.slice(0, Math.min(Number(query.get('limit') ?? 5), 100));
  const last = chunk.at(-1);
  return {
    chunk: chunk.map((event) => shownEvent(room, event)),
    ...(last !== undefined && ordered.length > chunk.length && { next_batch: `s${last.position - 1}` }),
  };
}
