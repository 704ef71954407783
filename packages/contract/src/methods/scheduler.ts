import * as z from 'zod';
import { method } from '../method.ts';
import { AgentId } from '../shared/session.ts';
import { WakeAdmission } from '../shared/wake.ts';

export const scheduler = {
  'scheduler.wake': method({
    scope: 'rpc',
    risk: 'mutate',
    summary: "Triggers an agent's heartbeat, or the check of all heartbeats; it runs no cron jobs.",
    description:
      'Requests close together become one heartbeat. Two heartbeats of an agent are at least 30 seconds apart, and no more than five start within a minute; earlier ones wait. The default agent is woken when none is named; `monitoring` calls no model and takes no agent.',
    params: () => z.strictObject({ target: z.enum(['agent', 'monitoring']), agentId: AgentId.optional() }),
    result: () => WakeAdmission,
    errors: ['not_found', 'denied', 'precondition_failed', 'unavailable'],
    examples: [
      {
        params: { target: 'agent' },
        result: {
          status: 'accepted',
          accepted: true,
          coalesced: false,
          disposition: 'new_occurrence',
          correlationId: 'hw_0199f2c4-8a3b-7e21-9c55-1f2d3e4a5b6c',
          lane: 'normal',
          retainedReason: 'wake',
        },
      },
    ],
    since: '0.1.0',
  }),
};
