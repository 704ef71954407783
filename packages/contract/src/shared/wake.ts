import * as z from 'zod';

/** Why an agent is woken (json-rpc.md §4, `scheduler.wake`). */
export const WakeReason = z.enum(['interval', 'manual', 'hook', 'wake', 'exec-event', 'cron', 'task']).meta({ id: 'WakeReason' });
export type WakeReason = z.output<typeof WakeReason>;

export const WakeLane = z.enum(['normal', 'task']).meta({ id: 'WakeLane' });
export type WakeLane = z.output<typeof WakeLane>;

/** Result of a wake: it is pending under `correlationId`, alone or together with an earlier one. */
export const WakeAdmission = z
  .strictObject({
    status: z.enum(['accepted', 'coalesced']),
    accepted: z.boolean(),
    coalesced: z.boolean(),
    disposition: z.enum(['new_occurrence', 'occurrence_upgraded']).optional().describe('Only when it was accepted.'),
    correlationId: z.string().describe('Contained in the three wake events of the occurrence.'),
    lane: WakeLane,
    retainedReason: WakeReason.describe('Of all the joined requests, the one that the heartbeat runs for.'),
  })
  .meta({ id: 'WakeAdmission' });
