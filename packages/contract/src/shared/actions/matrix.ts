import * as z from 'zod';
import type { PlatformActions } from '../platform-action.ts';

const yes = z.literal(true);
const Id = z.string();
const UserId = z
  .string()
  .max(255)
  .regex(/^@[^\s:]*:[^\s/?#]+$/, 'expected the id of a user, such as @ada:example.org');
const RoomIdOrAlias = z
  .string()
  .max(255)
  .regex(/^[!#][^\s]+$/, 'expected the id or the alias of a room, such as #lab:example.org');
const Reason = z.string().min(1).max(512).optional().describe('Shown to the people in the room.');
const onUser = () => z.strictObject({ user_id: UserId, reason: Reason });

/** Actions of `matrix.action`: those on the endpoint's room, and to join another one. */
export const matrixActions = {
  join: {
    risk: 'mutate',
    summary: 'Joins a room that is public, or to which the account is invited',
    params: () => z.strictObject({ room_id_or_alias: RoomIdOrAlias }),
    result: () => z.strictObject({ joined: yes, roomId: Id }),
  },
  leave: {
    risk: 'destructive',
    summary: 'Leaves the room',
    params: () => z.strictObject({ reason: Reason }),
    result: () => z.strictObject({ left: yes, roomId: Id }),
  },
  invite: {
    risk: 'mutate',
    summary: 'Invites a user to the room',
    params: onUser,
    result: () => z.strictObject({ invited: yes, roomId: Id, userId: Id }),
  },
  kick: {
    risk: 'destructive',
    summary: 'Removes a user from the room',
    params: onUser,
    result: () => z.strictObject({ kicked: yes, roomId: Id, userId: Id }),
  },
  ban: {
    risk: 'destructive',
    summary: 'Bans a user from the room',
    params: onUser,
    result: () => z.strictObject({ banned: yes, roomId: Id, userId: Id }),
  },
  set_topic: {
    risk: 'mutate',
    summary: 'Sets the topic of the room',
    params: () => z.strictObject({ topic: z.string().max(4_096) }),
    result: () => z.strictObject({ topicSet: yes, roomId: Id }),
  },
  sendTyping: {
    risk: 'mutate',
    summary: 'Shows for 30 seconds that an answer is being written',
    params: () => z.strictObject({}),
    result: () => z.strictObject({ typing: yes, roomId: Id }),
  },
} as const satisfies PlatformActions;
