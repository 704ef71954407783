import * as z from 'zod';
import { once } from '../once.ts';
import { EpochMs } from '../shared/turn.ts';

const EventId = z.int().min(0).describe('Ids grow, also over restarts, and do not reveal the number of events.');

/** Data of the event `gap` of `GET /api/events`: the events from `from` to `to` that the token may see, if any, were missed (decisions §4). */
export const EventGap = z
  .strictObject({
    from: EventId,
    to: EventId,
    reason: z
      .enum(['expired', 'unknown', 'lost', 'not_kept'])
      .describe(
        '`expired`: older than what is kept; `unknown`: the last event id is not one of this server; `lost`: a crash or a full disk prevented their storage; `not_kept`: they belonged to a /v1 turn, whose messages are never stored.',
      ),
  })
  .meta({ id: 'EventGap' });
export type EventGap = z.output<typeof EventGap>;

/** Answer of `GET /api/activity`: the newest events that the token may see, oldest first. */
export const ActivityList = once(() =>
  z
    .strictObject({
      entries: z.array(z.strictObject({ id: EventId, event: z.string(), payload: z.looseObject({}), timestamp: EpochMs })),
      count: z.int().min(0),
    })
    .meta({ id: 'ActivityList' }),
);
export type ActivityList = z.output<ReturnType<typeof ActivityList>>;
