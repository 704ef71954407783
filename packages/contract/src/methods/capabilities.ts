import * as z from 'zod';
import { method } from '../method.ts';
import { autonomyProfiles, Capability } from '../shared/capability.ts';
import { AgentId } from '../shared/session.ts';
import { RootRunId } from '../shared/sub-agent.ts';
import { EpochMs } from '../shared/turn.ts';

const Budget = z.strictObject({
  cap: z.enum(['perTurnTokens', 'perHourTokens', 'perDayTokens', 'perTurnUsd', 'perHourUsd', 'perDayUsd']).describe('Its key under `budgets`.'),
  scope: z.enum(['agent', 'all']).describe("`agent`: the agent's own cap; `all`: that of all agents together, with what all of them use."),
  window: z.enum(['turn', 'hour', 'day']).describe('Hour and day are the last 60 minutes and the last 24 hours.'),
  unit: z.enum(['tokens', 'usd']),
  limit: z.number().min(0),
  used: z.number().min(0).describe('0 for caps of a turn, which each turn begins anew.'),
  reserved: z.number().min(0).describe('Held by calls that are under way, until they are settled at what they really used.'),
  remaining: z.number().min(0),
  warnAt: z.number().min(0).describe('Use at which a warning is given, once per window.'),
  resetsInMs: z.int().min(0).nullable().describe('Until the oldest use leaves the window and room comes back; null when nothing is used.'),
});

const Autonomy = z.strictObject({
  profile: z.enum(autonomyProfiles),
  caps: z.array(Capability).describe('What may be set going at this moment: of a sub-agent, what its lease and its profile both allow.'),
  rootRunId: RootRunId.optional().describe('Of the turn that asks.'),
  budget: z
    .strictObject({ tokensRemaining: z.number().min(0), usdRemaining: z.number().min(0), wallClockMsRemaining: z.int().min(0) })
    .describe('Left to everything that the request set going, all together.'),
  spawns: z.strictObject({ perMinuteRemaining: z.int().min(0) }),
  messages: z.strictObject({ perHourRemaining: z.int().min(0) }),
  outwardQuota: z.strictObject({ perHourRemaining: z.int().min(0) }),
});

export const capabilities = {
  'capabilities.introspect': method({
    scope: 'rpc',
    risk: 'read',
    summary: "Returns the calling agent's own budgets and quotas as they are at this moment.",
    description:
      'An agent sees its own. Other callers name an agent that they may use, or get the default one; what its caps leave holds for their turns too. ' +
      'Only configured caps are listed. Nothing is cached: figures are those of the caps themselves.',
    params: z.strictObject({ agentId: AgentId.optional() }),
    result: z.strictObject({
      agentId: AgentId,
      enabled: z.boolean().describe('False while the agent is suspended.'),
      budgets: z.array(Budget),
      concurrency: z
        .strictObject({ running: z.int().min(0), queued: z.int().min(0), max: z.int().min(1) })
        .describe('Turns of the agent that run, turns that wait for a place among them, and how many may run at once.'),
      autonomy: Autonomy,
      timestamp: EpochMs,
    }),
    errors: ['not_found'],
    examples: [
      {
        params: {},
        result: {
          agentId: 'default',
          enabled: true,
          budgets: [
            {
              cap: 'perDayUsd',
              scope: 'agent',
              window: 'day',
              unit: 'usd',
              limit: 5,
              used: 1.25,
              reserved: 0.02,
              remaining: 3.73,
              warnAt: 4,
              resetsInMs: 3_120_000,
            },
          ],
          concurrency: { running: 1, queued: 0, max: 64 },
          autonomy: {
            profile: 'standard',
            caps: ['orch:spawn', 'orch:read'],
            rootRunId: 'root-turn-tn_00000000-0000-7000-8000-000000000001',
            budget: { tokensRemaining: 199_000_000, usdRemaining: 198.5, wallClockMsRemaining: 172_000_000 },
            spawns: { perMinuteRemaining: 30 },
            messages: { perHourRemaining: 20 },
            outwardQuota: { perHourRemaining: 4000 },
          },
          timestamp: 1_790_000_000_000,
        },
      },
    ],
    since: '0.1.0',
  }),
};
