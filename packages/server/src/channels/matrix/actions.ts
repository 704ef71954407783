import type { Act, Place } from '../port.ts';
import type { MatrixApi } from './api.ts';
import { JoinedTo } from './events.ts';
import { actFailure } from './evidence.ts';
import { isRoomAlias, isRoomId, isUserId } from './ids.ts';

export type ActionResult = Act<Readonly<Record<string, unknown>>>;
type Params = Readonly<Record<string, unknown>>;

const invalid = (text: string) => ({ is: 'failed', kind: 'invalid', text }) as const;
const textOf = (params: Params, name: string): string => (typeof params[name] === 'string' ? params[name] : '');
const reasonIn = (params: Params): object => (textOf(params, 'reason') === '' ? {} : { reason: textOf(params, 'reason') });

const onUsers: Readonly<Record<string, string>> = { invite: 'invited', kick: 'kicked', ban: 'banned' };

/** Carries out an action on a room; undefined for one that is not declared. */
export async function runAction(
  api: MatrixApi,
  name: string,
  params: Params,
  { conversationId: roomId }: Place,
  signal: AbortSignal,
): Promise<ActionResult> {
  if (name === 'join') return join(api, textOf(params, 'room_id_or_alias'), signal);
  if (!isRoomId(roomId)) return invalid('Not the id of a room');
  const flag = onUsers[name];
  if (flag !== undefined) {
    const userId = textOf(params, 'user_id');
    if (!isUserId(userId)) return invalid('Not the id of a user');
    const outcome = await api.request('POST', ['rooms', roomId, name], { body: { user_id: userId, ...reasonIn(params) }, signal });
    return outcome.is === 'done' ? { is: 'done', value: { [flag]: true, roomId, userId } } : actFailure(outcome);
  }
  if (name === 'leave') {
    const outcome = await api.request('POST', ['rooms', roomId, 'leave'], { body: reasonIn(params), signal });
    return outcome.is === 'done' ? { is: 'done', value: { left: true, roomId } } : actFailure(outcome);
  }
  if (name === 'set_topic') {
    const body = { topic: textOf(params, 'topic') };
    const outcome = await api.request('PUT', ['rooms', roomId, 'state', 'm.room.topic', ''], { body, signal });
    return outcome.is === 'done' ? { is: 'done', value: { topicSet: true, roomId } } : actFailure(outcome);
  }
  return invalid(`Unsupported action: ${name} on matrix`);
}

async function join(api: MatrixApi, room: string, signal: AbortSignal): Promise<ActionResult> {
  if (!isRoomId(room) && !isRoomAlias(room)) return invalid('Not the id or the alias of a room');
  const outcome = await api.request('POST', ['join', room], { body: {}, signal });
  if (outcome.is !== 'done') return actFailure(outcome);
  const roomId = JoinedTo.safeParse(outcome.body).data?.room_id ?? room;
  return { is: 'done', value: { joined: true, roomId } };
}
