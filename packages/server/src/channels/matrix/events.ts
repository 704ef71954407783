import * as z from 'zod';
import { checkJson } from '../../kernel/json.ts';

const Content = z.record(z.string(), z.unknown());
const Event = z.object({
  type: z.string(),
  event_id: z.string().optional(),
  sender: z.string(),
  state_key: z.string().optional(),
  origin_server_ts: z.number().optional(),
  content: Content.catch({}),
  redacts: z.string().optional().catch(undefined),
  unsigned: z
    .object({
      prev_content: Content.optional().catch(undefined),
      'm.relations': z.object({ 'm.replace': z.unknown().optional() }).optional().catch(undefined),
    })
    .optional()
    .catch(undefined),
});

/** An event, as far as it has the shape of one. Its content is that of anybody. */
export type MatrixEvent = z.output<typeof Event>;

/** Parses events of an answer; what has not the shape of one is left out, so that nobody can stop the others. */
export function parseEvents(values: readonly unknown[]): MatrixEvent[] {
  return values.flatMap((value) => {
    if (checkJson(value) !== undefined) return [];
    const parsed = Event.safeParse(value);
    return parsed.success ? [parsed.data] : [];
  });
}

const Events = z
  .object({ events: z.array(z.unknown()).default([]) })
  .default({ events: [] })
  .catch({ events: [] });
const Joined = z.object({
  timeline: z
    .object({ events: z.array(z.unknown()).default([]), limited: z.boolean().default(false), prev_batch: z.string().optional() })
    .default({ events: [], limited: false }),
  state: Events,
  summary: z
    .object({ 'm.joined_member_count': z.int().min(0).optional() })
    .default({})
    .catch({}),
});
const Invited = z.object({ invite_state: Events });

export const SyncAnswer = z.object({
  next_batch: z.string().min(1).max(2_048),
  account_data: Events,
  rooms: z
    .object({
      join: z.record(z.string(), Joined).default({}),
      invite: z.record(z.string(), Invited).default({}),
      leave: z.record(z.string(), z.unknown()).default({}),
    })
    .default({ join: {}, invite: {}, leave: {} }),
});
export type SyncAnswer = z.output<typeof SyncAnswer>;
export type JoinedRoom = z.output<typeof Joined>;
export type InvitedRoom = z.output<typeof Invited>;

/** Answer of `/messages`, and of relations. */
export const EventPage = z.object({ chunk: z.array(z.unknown()), end: z.string().optional(), next_batch: z.string().optional() });
export const WhoAmI = z.object({ user_id: z.string() });
export const SentEvent = z.object({ event_id: z.string() });
export const JoinedTo = z.object({ room_id: z.string() });
export const Uploaded = z.object({ content_uri: z.string() });
export const MediaConfig = z.object({ 'm.upload.size': z.number().optional() });
export const Profile = z.object({ displayname: z.string().optional() });
export const EventContext = z.object({ start: z.string() });

/** Relation of an event to another one. */
export interface Relation {
  readonly type: string | undefined;
  readonly eventId: string | undefined;
  readonly key: string | undefined;
  readonly replyTo: string | undefined;
}

const Relates = z.object({
  rel_type: z.string().optional().catch(undefined),
  event_id: z.string().optional().catch(undefined),
  key: z.string().optional().catch(undefined),
  is_falling_back: z.boolean().optional().catch(undefined),
  'm.in_reply_to': z.object({ event_id: z.string() }).optional().catch(undefined),
});

export function relationOf({ content }: Pick<MatrixEvent, 'content'>): Relation {
  const relates = Relates.safeParse(content['m.relates_to']).data;
  const replyTo = relates?.['m.in_reply_to']?.event_id;
  return {
    type: relates?.rel_type,
    eventId: relates?.event_id,
    key: relates?.key,
    // In a thread it may only say what older clients show.
    replyTo: relates?.rel_type === 'm.thread' && relates.is_falling_back === true ? undefined : replyTo,
  };
}

/** Returns a text of the content; undefined when it is none. */
export function textIn(content: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = content[name];
  return typeof value === 'string' ? value : undefined;
}
