import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { AgentId, ConversationRef, PrintedSessionKey } from '../shared/session.ts';

const count = z.int().min(0);
const ago = z.int().min(0).describe('A duration in milliseconds: only what happened since then. Everything that is kept when absent.');
const synthetic = z.boolean().default(false).describe('Includes evaluations, replays and `webhooks.test`, which are left out otherwise.');
const billed = once(() => ({ sinceMs: ago.optional(), includeSynthetic: synthetic }));

const snapshot = once(() => ({
  totalCost: z.number().min(0).describe('US dollars of the calls with a known price.'),
  totalTokens: count.describe('Input plus output.'),
  callCount: count,
  totalCacheSaved: z.number().describe("US dollars that the providers' prompt caches saved; negative when writing to them cost more."),
  unpriced: count.describe('Calls without a known price.'),
}));

const used = (limit: z.ZodType = count) => z.strictObject({ used: count, limit: limit.optional() });

const sumsExample = { totalCost: 0.021, totalTokens: 9600, callCount: 3, totalCacheSaved: 0.0162, unpriced: 0 };
const sameSums =
  'The sums are those of `usage.report`, to the last 1e-9 dollar, without synthetic calls and without what `obs.reset` cleared. Limited to its agents for a token that is limited to some.';

/** Reports on usage, channels, deliveries and contexts (json-rpc.md §4). */
export const obsReports = {
  'obs.billing.total': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns cost and usage of all model calls.',
    description: sameSums,
    params: () => z.strictObject(billed()),
    result: () => z.strictObject(snapshot()),
    examples: [{ params: { sinceMs: 86_400_000 }, result: sumsExample }],
    since: '0.1.0',
  }),
  'obs.billing.usage24h': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns the tokens of the last 24 hours of the clock, by hour of day.',
    description:
      'Always 24 entries, from hour 0 to hour 23 of the time zone `scheduler.cron.defaultTimezone`: up to the current hour those of today, the later ones those of yesterday. ' +
      'When clocks go forward the skipped hour has no tokens; when they go back the repeated hour is one entry.',
    params: () => z.strictObject({ includeSynthetic: synthetic }),
    result: () => z.array(z.strictObject({ hour: z.int().min(0).max(23), tokens: count })).length(24),
    examples: [{ params: {}, result: Array.from({ length: 24 }, (_, hour) => ({ hour, tokens: hour === 9 ? 4200 : 0 })) }],
    since: '0.1.0',
  }),
  'obs.billing.byProvider': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns cost and usage by provider and model, the most expensive first.',
    description: sameSums,
    params: () => z.strictObject(billed()),
    result: () =>
      z.strictObject({
        providers: z.array(
          z.strictObject({
            provider: z.string(),
            ...snapshot(),
            models: z.array(z.strictObject({ model: z.string(), cost: z.number().min(0), tokens: count, calls: count })),
          }),
        ),
      }),
    examples: [
      {
        params: {},
        result: {
          providers: [{ provider: 'local', ...sumsExample, models: [{ model: 'test-model', cost: 0.021, tokens: 9600, calls: 3 }] }],
        },
      },
    ],
    since: '0.1.0',
  }),
  'obs.billing.byAgent': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns cost and usage of one agent, and how much of its token budgets is used.',
    description: `${sameSums} An agent without calls, or one that does not exist, has zeros. Budgets count every call, synthetic ones included.`,
    params: () => z.strictObject({ agentId: AgentId, ...billed() }),
    result: () =>
      z.strictObject({
        ...snapshot(),
        budgetUsed: z
          .strictObject({ perExecution: z.strictObject({ limit: count }), perHour: used(), perDay: used() })
          .optional()
          .describe('Tokens, with the limit where there is one; absent for an agent that does not exist.'),
      }),
    errors: ['not_found'],
    examples: [
      {
        params: { agentId: 'default' },
        result: {
          ...sumsExample,
          budgetUsed: { perExecution: { limit: 2_000_000 }, perHour: { used: 9600 }, perDay: { used: 9600, limit: 5_000_000 } },
        },
      },
    ],
    since: '0.1.0',
  }),
  'obs.billing.bySession': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns cost and usage of one conversation, also after it was deleted.',
    description: `${sameSums} A session key names the conversations of all principals and agents with this key. At least one of both is required.`,
    params: () =>
      z
        .strictObject({ sessionKey: PrintedSessionKey.optional(), conversationRef: ConversationRef.optional(), ...billed() })
        .refine(({ sessionKey, conversationRef }) => sessionKey !== undefined || conversationRef !== undefined, {
          message: 'expected sessionKey or conversationRef',
          path: ['sessionKey'],
        }),
    result: () => z.strictObject(snapshot()),
    examples: [{ params: { sessionKey: 'local:default:ada' }, result: sumsExample }],
    since: '0.1.0',
  }),
  'obs.getCacheStats': method({
    scope: 'admin',
    risk: 'read',
    summary: "Returns how much of the input was read from the providers' prompt caches.",
    description: 'Both are 0 when there is nothing to divide by. `agent.cacheStats` has the numbers of each model.',
    params: () => z.strictObject(billed()),
    result: () =>
      z.strictObject({
        cacheHitRate: z.number().min(0).max(1).describe('Share of the input tokens that was read from a cache.'),
        cacheEffectiveness: z.number().min(0).max(1).describe('Tokens read from a cache, as a share of those read and written.'),
      }),
    examples: [{ params: {}, result: { cacheHitRate: 0.66, cacheEffectiveness: 0.8 } }],
    since: '0.1.0',
  }),
};
