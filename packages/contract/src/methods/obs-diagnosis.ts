import * as z from 'zod';
import { method } from '../method.ts';
import { once } from '../once.ts';
import { ExplainReport } from '../shared/explain-report.ts';
import { SystemHealthReport } from '../shared/health-report.ts';
import { TracedTokens, traceKinds, traceOutcomes } from '../shared/trace.ts';

const exact = once(() => z.string().min(1).max(512));
const count = z.int().min(0);

/** A trace record without steps and content. */
export const TraceSearchRow = once(() =>
  z
    .strictObject({
      id: z.string().describe('Of a turn: its id, followed by `.1`, `.2`… for later parts.'),
      ts: z.string().describe('When it began, as ISO 8601 in UTC.'),
      event: z.string().describe('Kind and outcome, such as `turn_ok` or `turn_failed`.'),
      kind: z.enum(traceKinds),
      outcome: z.enum(traceOutcomes),
      endReason: z.string().nullable(),
      lastError: z.string().nullable().describe('Code of the error.'),
      traceId: z.string(),
      sessionId: z.string().nullable().describe('The conversation reference.'),
      sessionKey: z.string().nullable(),
      messageId: z.string().nullable(),
      channelType: z.string().nullable(),
      chatId: z.string().nullable().describe('The name of the channel; the built-in one is `inbox`.'),
      agentId: z.string().nullable(),
      origin: z.string().nullable(),
      rootRunId: z.string().nullable(),
      model: z.string().nullable(),
      durationMs: count,
      tokens: TracedTokens(),
      costUsd: z.number().nullable(),
      modelCalls: count,
      toolCalls: count,
      toolErrors: count,
      synthetic: z.boolean(),
    })
    .meta({ id: 'TraceSearchRow' }),
);

const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
const session = { sessionKey: 'ada:web', conversationRef: 'cv_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' };

export const obsDiagnosis = {
  'obs.trace.search': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Finds trace records by message, trace, chat, time or condition, newest first.',
    description: [
      'At least one of `messageId`, `traceId`, `chatId`, `since` and `where` is required; all are combined with AND. A message is named by the id of the platform or ours, in both directions; a chat by the id of its conversation on the platform, or by the name of its channel. Only the last two days are searched, unless `since` says more.',
      'A condition of `where` is `FIELD OPERATOR VALUE`, or the word `error` (it failed, or has an error code). Conditions are joined with `and`, `or`, `not` and parentheses; a value with spaces is in double quotes.',
      'Fields with texts: `id`, `kind`, `outcome`, `reason`, `error` (code), `model`, `agent`, `origin`, `session` (key), `conversation`, `channel`, `chat`, `trace`, `root`, `message`, `principal` and `tool`; operators `=`, `!=`, `~` (begins with) and `in (a, b)`.',
      'Fields with numbers: `cost` (US dollars), `tokens`, `input`, `output`, `cached`, `duration` (with `ms`, `s`, `m` or `h`), `calls` (of models), `tools` and `toolErrors`; operators `=`, `!=`, `<`, `<=`, `>` and `>=`.',
      'At most 500 characters, 20 conditions and 8 levels of parentheses. Example: `outcome = failed and tool = exec and cost > 0.01`.',
    ].join(' '),
    params: () =>
      z
        .strictObject({
          messageId: exact().optional(),
          traceId: exact().optional(),
          chatId: exact().optional(),
          since: z
            .string()
            .regex(/^[1-9]\d{0,8}[smhd]$/, 'expected a number with s, m, h or d, such as 12h')
            .optional()
            .describe('How far back, such as `30m`, `12h` or `7d`.'),
          where: z.string().min(1).max(500).optional().describe('A condition, such as `error` or `outcome = failed and tool = exec`.'),
          limit: z.int().min(1).max(1000).default(200),
          includeSynthetic: z.boolean().default(false).describe('Also those of evaluations, replays and `webhooks.test`.'),
        })
        .refine(
          ({ messageId, traceId, chatId, since, where }) => [messageId, traceId, chatId, since, where].some((given) => given !== undefined),
          'expected at least one of messageId, traceId, chatId, since, where',
        ),
    result: () => z.strictObject({ rows: z.array(TraceSearchRow()) }),
    examples: [
      {
        params: { since: '1h', where: 'outcome = failed and tool = exec', limit: 1 },
        result: {
          rows: [
            {
              id: 'tn_0199e0a0-7c00-7000-8000-000000000001',
              ts: '2026-09-21T13:33:20.000Z',
              event: 'turn_failed',
              kind: 'turn',
              outcome: 'failed',
              endReason: 'provider_degraded',
              lastError: 'rate_limit',
              traceId: trace,
              sessionId: session.conversationRef,
              sessionKey: session.sessionKey,
              messageId: null,
              channelType: null,
              chatId: null,
              agentId: 'default',
              origin: 'api',
              rootRunId: null,
              model: 'openai/gpt-5-mini',
              durationMs: 4200,
              tokens: { in: 1200, out: 40, cached: 0, cacheWritten: 0 },
              costUsd: 0.0004,
              modelCalls: 2,
              toolCalls: 1,
              toolErrors: 1,
              synthetic: false,
            },
          ],
        },
      },
    ],
    since: '0.1.0',
  }),
  'obs.explain': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Explains the latest execution of a session, or a given one: how it ended, what failed, and the likely root cause.',
    description:
      'Derived from stored records by fixed rules, without a model: the same records return the same report. Contains counts, codes, ids and digests, never content. An unknown reference is a report with the root cause `session_not_found`, not an error.',
    params: () =>
      z
        .strictObject({
          sessionKey: z.string().min(1).max(3200).optional().describe('The printed key, or a conversation reference (cv_…).'),
          traceId: exact().optional(),
          rootRunId: exact().optional(),
          depth: z
            .enum(['summary', 'full'])
            .default('summary')
            .describe('`summary`: at most 6 KiB and 20 entries of each list; `full`: 200 entries.'),
          includeSynthetic: z.boolean().default(false),
        })
        .refine(
          ({ sessionKey, traceId, rootRunId }) => [sessionKey, traceId, rootRunId].some((given) => given !== undefined),
          'sessionKey, traceId, or rootRunId required',
        ),
    result: () => ExplainReport(),
    examples: [
      {
        params: { sessionKey: 'nobody:web' },
        result: {
          schemaVersion: 1,
          sessionKey: 'nobody:web',
          conversationRef: null,
          traceId: null,
          agentId: null,
          channel: { type: null, id: null },
          outcome: null,
          cost: { costUsd: null, totalTokens: 0, cacheReadRatio: 0 },
          timing: { durationMs: 0, turnCount: 0 },
          toolStats: {},
          failures: [],
          breakerTimeline: [],
          offloads: [],
          summary: 'Nothing is stored under this reference.',
          likelyRootCause: {
            code: 'session_not_found',
            detail: 'Nothing is stored under the given sessionKey.',
            suggestedNextSteps: ['gatehouse sessions list'],
          },
          suggestedNextSteps: ['gatehouse sessions list'],
          truncations: [{ field: 'report', reason: 'session_not_found' }],
        },
      },
    ],
    since: '0.1.0',
  }),
  'obs.system.health': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Reports how all sessions of a window went, with findings and the likely root cause.',
    description:
      'Each finding has a fixed threshold. The root cause is the first that applies: degradation of autonomous runs, a high rate of degraded sessions, an acute rise in the last hour, then the most frequent of the other findings. Synthetic records are left out.',
    params: () => z.strictObject({ sinceHours: z.number().positive().max(8760).default(24) }),
    result: () => SystemHealthReport(),
    examples: [
      {
        params: {},
        result: {
          schemaVersion: 1,
          windowHours: 24,
          sessions: { total: 0, degraded: 0, degradedRate: 0, deliveredWithToolErrors: 0 },
          topErrorKinds: [],
          degradedByCause: {},
          breakerTripTotal: 0,
          toolStats: {},
          cost: { costUsd: 0, totalTokens: 0, offSessionUsd: 0 },
          activity: { activeAgents: [], activeChannels: [], exitReasons: {}, turnTotal: 0, tokenTotal: 0 },
          findings: [],
          likelyRootCause: null,
          suggestedNextSteps: [],
          truncations: [],
        },
      },
    ],
    since: '0.1.0',
  }),
};
