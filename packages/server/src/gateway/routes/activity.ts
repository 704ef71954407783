import { eventKinds } from '@gatehouse/contract';
import * as z from 'zod';
import type { EventsApi } from '../../features/operations/events/api.ts';
import type { HttpCall } from '../http-call.ts';
import { parseQuery } from '../query.ts';
import { sendJsonText } from '../reply.ts';

const maxEntries = 100;

const number = z
  .string()
  .regex(/^\d{1,16}$/, { error: 'expected a whole number' })
  .transform(Number)
  .optional();

const Query = z.strictObject({
  before: number,
  since: number,
  until: number,
  kind: z.enum(eventKinds, { error: 'expected a kind of event, such as message:sent' }).optional(),
  limit: z
    .string()
    .regex(/^\d{1,15}$/, { error: `expected a whole number from 1 to ${maxEntries}` })
    .default('50')
    .transform((text) => Math.min(Math.max(Number(text), 1), maxEntries)),
});

/** `GET /api/activity`: recent events, as far as the token may see them; filtered ones from what is stored, without the last second. */
export function createActivityRoute({ events }: { readonly events: EventsApi }): (call: HttpCall) => Promise<void> {
  return async (call) => {
    const { limit, before, since, until, kind } = parseQuery(Query, call);
    const { identity } = call.context();
    const isFiltered = [before, since, until, kind].some((filter) => filter !== undefined);
    const found = isFiltered
      ? await events.find(identity, { limit, beforeId: before, sinceMs: since, untilMs: until, kind })
      : await events.recent(identity, limit);
    // The payloads are JSON already.
    const entries = found.map(({ id, kind, atMs, json }) => `{"id":${id},"event":"${kind}","payload":${json},"timestamp":${atMs}}`);
    sendJsonText(call, 200, `{"entries":[${entries.join(',')}],"count":${entries.length}}`);
  };
}
