import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { AgentId, ConversationRef, PrintedSessionKey } from '../shared/session.ts';
import { EpochMs } from '../shared/turn.ts';

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

/** How the work on a message ended: `filtered`: nothing was to be done; `cancelled`: it was stopped before its end. */
export const deliveryStatuses = ['success', 'error', 'timeout', 'filtered', 'cancelled'] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

const Channel = once(() =>
  z
    .strictObject({
      channelType: z.string().describe('`gateway`: clients of this gateway and its inbox; `webhook`: a mapping.'),
      channelId: z.string().describe('The second part of the session key, `v1`, `inbox`, or the id of a mapping.'),
      lastActiveAt: EpochMs,
      messagesSent: count,
      messagesReceived: count,
    })
    .meta({ id: 'ChannelActivity' }),
);
const channelExample = { channelType: 'gateway', channelId: 'dashboard', lastActiveAt: 1_790_000_000_000, messagesSent: 12, messagesReceived: 13 };
const channelName = z.string().min(1).max(512);

const Delivery = once(() =>
  z
    .strictObject({
      id: z.string().describe('Of the record: `obs.trace.get` returns its steps.'),
      channelType: z.string().nullable(),
      channelId: z.string().nullable(),
      status: z.enum(deliveryStatuses),
      startedAt: EpochMs,
      deliveredAt: EpochMs.describe('When it ended.'),
      latencyMs: count,
      errorKind: z.string().nullable(),
      agentId: z.string().nullable(),
      sessionKey: z.string().nullable(),
      conversationRef: z.string().nullable(),
      traceId: z.string(),
      llmCalls: count,
      toolCalls: count,
      tokensTotal: count,
      costTotal: z.number().min(0).nullable().describe('US dollars; null when a price is not known.'),
    })
    .meta({ id: 'DeliveryRecord' }),
);

const lifecycles =
  'A lifecycle is a message and its answer to a client of the gateway, a webhook, or a message for the inbox, from its start to its end. A window counts those that began in it. ' +
  'Kept as long as traces are.';

const ContextUse = once(() =>
  z
    .strictObject({
      recordId: z.string(),
      traceId: z.string(),
      agentId: z.string().nullable(),
      sessionKey: z.string().nullable(),
      conversationRef: z.string().nullable(),
      timestamp: EpochMs,
      durationMs: count,
      verdict: z.string().nullable().describe('`fits`, `downshifted` or `exhausted`.'),
      windowTokens: count.nullable(),
      tokensLoaded: count.nullable().describe('Tokens of system prompt and history that were sent.'),
      budgetUtilization: z.number().min(0).nullable().describe('`tokensLoaded` as a share of the window.'),
      messagesIn: count.nullable().describe('Messages of the conversation.'),
      messagesOut: count.nullable().describe('Messages that were sent.'),
      messagesLeftOut: count,
      resultsMasked: count.describe('Old tool results that were shortened.'),
      summariesUsed: count,
      cacheHitTokens: count,
      cacheWriteTokens: count,
      cacheMissTokens: count,
    })
    .meta({ id: 'ContextUse' }),
);

const ContextTree = once(() =>
  z
    .strictObject({
      agentId: z.string(),
      sessionKey: z.string(),
      conversationRef: ConversationRef,
      leafSummaries: count.describe('Summaries of messages.'),
      condensedSummaries: count.describe('Summaries of summaries.'),
      totalSummaries: count,
      maxDepth: count,
      summaryTokens: count.describe('Tokens of the summaries that are sent.'),
      timestamp: EpochMs.describe('When the newest one was made.'),
    })
    .meta({ id: 'ContextTree' }),
);

export const diagnosticCategories = ['usage', 'webhook', 'message', 'session'] as const;
export type DiagnosticCategory = (typeof diagnosticCategories)[number];

const Diagnostic = once(() =>
  z
    .strictObject({
      id: z.string(),
      category: z.enum(diagnosticCategories),
      eventType: z.string(),
      timestamp: EpochMs,
      agentId: z.string().optional(),
      sessionKey: z.string().optional(),
      conversationRef: z.string().optional(),
      traceId: z.string().optional(),
      data: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])).describe('Ids, counts and codes of the event.'),
    })
    .meta({ id: 'DiagnosticEvent' }),
);

/** Data that `obs.reset.table` resets. */
export const resetTables = ['token_usage', 'delivery', 'diagnostics', 'channels', 'traces'] as const;
export type ResetTarget = (typeof resetTables)[number];

const resetMeaning =
  '`token_usage`: `obs.billing.*` and `obs.getCacheStats` start from zero; `delivery`: `obs.delivery.*` starts from zero, and the records of deliveries are deleted; `diagnostics`: `obs.diagnostics` starts from zero; ' +
  '`channels`: the activity of channels is deleted; `traces`: all trace records are deleted. Model calls, their sums, budgets, reservations, stored events and the audit stay: `rowsDeleted` counts only what was deleted. ' +
  'Work that is running is recorded at its end.';

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
  'obs.channels.all': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns the channels with their counts of messages, the most recently active first.',
    description: 'Counts survive restarts. Channels that were quiet for longer than `observability.persistence.retentionDays` are dropped.',
    params: () => z.strictObject({}),
    result: () => z.strictObject({ channels: z.array(Channel()) }),
    examples: [{ params: {}, result: { channels: [channelExample] } }],
    since: '0.1.0',
  }),
  'obs.channels.stale': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns the channels that have been quiet for some time.',
    params: () => z.strictObject({ thresholdMs: z.int().min(0).default(300_000).describe('Quiet for at least so many milliseconds.') }),
    result: () => z.strictObject({ stale: z.array(Channel()) }),
    examples: [{ params: {}, result: { stale: [channelExample] } }],
    since: '0.1.0',
  }),
  'obs.channels.get': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns the activity of one channel; null when there is none.',
    params: () => z.strictObject({ channelId: channelName, channelType: channelName.default('gateway') }),
    result: () => z.strictObject({ channel: Channel().nullable() }),
    examples: [{ params: { channelId: 'dashboard' }, result: { channel: channelExample } }],
    since: '0.1.0',
  }),
  'obs.delivery.recent': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns the newest completed deliveries of messages.',
    description: lifecycles,
    params: () =>
      z.strictObject({
        ...billed(),
        limit: z.int().min(1).max(10_000).default(50),
        channelId: channelName.optional(),
        channelType: channelName.optional(),
      }),
    result: () => z.strictObject({ deliveries: z.array(Delivery()) }),
    examples: [
      {
        params: { limit: 1 },
        result: {
          deliveries: [
            {
              id: 'tn_0199e0a0-7c00-7000-8000-000000000001',
              channelType: 'gateway',
              channelId: 'dashboard',
              status: 'success',
              startedAt: 1_790_000_000_000,
              deliveredAt: 1_790_000_001_200,
              latencyMs: 1200,
              errorKind: null,
              agentId: 'default',
              sessionKey: 'ada:dashboard',
              conversationRef: null,
              traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
              llmCalls: 1,
              toolCalls: 0,
              tokensTotal: 960,
              costTotal: 0.00102,
            },
          ],
        },
      },
    ],
    since: '0.1.0',
  }),
  'obs.delivery.stats': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Counts completed deliveries of messages by how they ended.',
    description: `${lifecycles} \`total\` is all of them, \`attempted\` those with \`success\`, \`error\` or \`timeout\`.`,
    params: () => z.strictObject(billed()),
    result: () =>
      z.strictObject({
        total: count,
        attempted: count,
        success: count,
        error: count,
        timeout: count,
        filtered: count,
        cancelled: count,
        avgLatencyMs: z.number().min(0).describe('Mean over the attempted ones; 0 without any.'),
      }),
    examples: [
      { params: {}, result: { total: 12, attempted: 10, success: 8, error: 1, timeout: 1, filtered: 1, cancelled: 1, avgLatencyMs: 1204.5 } },
    ],
    since: '0.1.0',
  }),
  'obs.context.pipeline': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns how the newest turns fitted their conversation into the window of the model.',
    description: 'Newest first, one entry for each preparation of a context, from the trace records of turns. Never content.',
    params: () => z.strictObject({ agentId: AgentId.optional(), limit: z.int().min(1).max(200).default(50), includeSynthetic: synthetic }),
    result: () => z.array(ContextUse()),
    errors: ['not_found'],
    examples: [
      {
        params: { limit: 1 },
        result: [
          {
            recordId: 'tn_0199e0a0-7c00-7000-8000-000000000001',
            traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
            agentId: 'default',
            sessionKey: 'ada:dashboard',
            conversationRef: null,
            timestamp: 1_790_000_000_000,
            durationMs: 3,
            verdict: 'fits',
            windowTokens: 128_000,
            tokensLoaded: 32_000,
            budgetUtilization: 0.25,
            messagesIn: 40,
            messagesOut: 22,
            messagesLeftOut: 0,
            resultsMasked: 2,
            summariesUsed: 1,
            cacheHitTokens: 30_000,
            cacheWriteTokens: 0,
            cacheMissTokens: 2000,
          },
        ],
      },
    ],
    since: '0.1.0',
  }),
  'obs.context.dag': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns counts of the summaries of earlier messages, by conversation.',
    description: 'Conversations that were used last come first. `context.tree` shows the summaries of one conversation.',
    params: () => z.strictObject({ agentId: AgentId.optional(), limit: z.int().min(1).max(100).default(50) }),
    result: () => z.array(ContextTree()),
    errors: ['not_found'],
    examples: [
      {
        params: {},
        result: [
          {
            agentId: 'default',
            sessionKey: 'ada:dashboard',
            conversationRef: 'cv_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
            leafSummaries: 4,
            condensedSummaries: 1,
            totalSummaries: 5,
            maxDepth: 1,
            summaryTokens: 310,
            timestamp: 1_790_000_000_000,
          },
        ],
      },
    ],
    since: '0.1.0',
  }),
  'obs.diagnostics': method({
    scope: 'rpc',
    risk: 'read',
    summary: "Returns digests of the newest events of the caller's conversations, without content.",
    description:
      'Callers with scope `rpc` see what belongs to them, `admin` everything; a token limited to some agents sees only those. From the stored events, at most a second old; ' +
      'the newest 20000 are searched. `counts` are those of the window, whatever `category` and `limit` are.',
    params: () =>
      z.strictObject({
        category: z.enum(diagnosticCategories).optional(),
        limit: z.int().min(1).max(1000).default(50),
        sinceMs: ago.optional(),
      }),
    result: () =>
      z.strictObject({
        events: z.array(Diagnostic()),
        counts: z.strictObject({ usage: count, webhook: count, message: count, session: count }),
      }),
    examples: [
      {
        params: { category: 'message', limit: 1 },
        result: {
          events: [
            {
              id: '1790000000000001',
              category: 'message',
              eventType: 'message:sent',
              timestamp: 1_790_000_000_000,
              agentId: 'default',
              sessionKey: 'ada:dashboard',
              traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
              data: { origin: 'rpc', finishReason: 'stop' },
            },
          ],
          counts: { usage: 3, webhook: 0, message: 6, session: 1 },
        },
      },
    ],
    since: '0.1.0',
  }),
  'obs.reset': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Resets all observability data; this can’t be undone.',
    description: resetMeaning,
    params: () => z.strictObject({}),
    result: () =>
      z.strictObject({
        reset: z.literal(true),
        rowsDeleted: z.strictObject({ tokenUsage: count, delivery: count, diagnostics: count, channels: count, traces: count }),
      }),
    errors: ['denied', 'unavailable'],
    examples: [{ params: {}, result: { reset: true, rowsDeleted: { tokenUsage: 0, delivery: 12, diagnostics: 0, channels: 3, traces: 480 } } }],
    since: '0.1.0',
  }),
  'obs.reset.table': method({
    scope: 'admin',
    risk: 'destructive',
    summary: 'Resets one kind of observability data; this can’t be undone.',
    description: resetMeaning,
    params: () => z.strictObject({ table: z.enum(resetTables) }),
    result: () => z.strictObject({ reset: z.literal(true), table: z.enum(resetTables), rowsDeleted: count }),
    errors: ['denied', 'unavailable'],
    examples: [{ params: { table: 'channels' }, result: { reset: true, table: 'channels', rowsDeleted: 3 } }],
    since: '0.1.0',
  }),
};
