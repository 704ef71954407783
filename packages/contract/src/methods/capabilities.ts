import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { autonomyProfiles, Capability } from '../shared/capability.ts';
import { AgentId } from '../shared/session.ts';
import { RootRunId } from '../shared/sub-agent.ts';
import { EpochMs } from '../shared/turn.ts';

const Budget = once(() =>
  z.strictObject({
    cap: z.enum(['perTurnTokens', 'perHourTokens', 'perDayTokens', 'perTurnUsd', 'perHourUsd', 'perDayUsd']).describe('Its key under `budgets`.'),
    scope: z
      .enum(['agent', 'person', 'token', 'all'])
      .describe(
        "`agent`: the agent's own cap; `person`, `token`: that of the caller's person, or token without one; `all`: the cap and usage of all agents together.",
      ),
    window: z.enum(['turn', 'hour', 'day']).describe('Hour and day are the last 60 minutes and the last 24 hours.'),
    unit: z.enum(['tokens', 'usd']),
    limit: z.number().min(0),
    used: z.number().min(0).describe('0 for caps of a turn, which start again with each turn.'),
    reserved: z.number().min(0).describe('Reserved by running calls until they are settled with their actual usage.'),
    remaining: z.number().min(0),
    warnAt: z.number().min(0).describe('Usage at which a warning is emitted, once per window.'),
    resetsInMs: z.int().min(0).nullable().describe('Time until the oldest usage leaves the window and capacity returns; null without usage.'),
  }),
);

const Autonomy = once(() =>
  z.strictObject({
    profile: z.enum(autonomyProfiles),
    caps: z.array(Capability).describe('What may currently be started; for a sub-agent, what both its lease and its profile allow.'),
    rootRunId: RootRunId().optional().describe('Root run of the calling turn.'),
    budget: z
      .strictObject({ tokensRemaining: z.number().min(0), usdRemaining: z.number().min(0), wallClockMsRemaining: z.int().min(0) })
      .describe('What remains for everything that the request started, in total.'),
    spawns: z.strictObject({ perMinuteRemaining: z.int().min(0) }),
    messages: z.strictObject({ perHourRemaining: z.int().min(0) }),
    outwardQuota: z.strictObject({ perHourRemaining: z.int().min(0) }),
  }),
);

export const capabilities = {
  'capabilities.introspect': method({
    scope: 'rpc',
    risk: 'read',
    summary: "Returns the calling agent's own budgets and quotas at this moment.",
    description:
      'An agent sees its own state. Other callers name an agent that they may use, or get the default one; its remaining budget applies to their turns too. ' +
      'Only configured caps are listed. Nothing is cached: the figures are current.',
    params: () => z.strictObject({ agentId: AgentId.optional() }),
    result: () =>
      z.strictObject({
        agentId: AgentId,
        enabled: z.boolean().describe('False while the agent is suspended.'),
        budgets: z.array(Budget()),
        concurrency: z
          .strictObject({ running: z.int().min(0), queued: z.int().min(0), max: z.int().min(1) })
          .describe('Running turns of the agent, turns queued for a slot, and the maximum of concurrent turns.'),
        autonomy: Autonomy(),
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
