import * as z from 'zod';
import { once } from '../once.ts';
import { method } from '../method.ts';
import { AgentId } from '../shared/session.ts';
import { EpochMs } from '../shared/turn.ts';

const sums = once(() => ({
  calls: z.int().min(0).describe('Model calls, failed attempts included.'),
  inputTokens: z.int().min(0).describe('Includes tokens read from and written to the cache.'),
  outputTokens: z.int().min(0),
  cacheReadTokens: z.int().min(0),
  cacheWriteTokens: z.int().min(0),
  costUsd: z.number().min(0).nullable().describe('US dollars of the calls with a known price; null when there are none.'),
  savedUsd: z.number().describe("What the providers' prompt caches saved; negative when writing to them cost more."),
  unpriced: z.int().min(0).describe('Calls without a known price.'),
}));

/** Days are written with a year of four digits. */
const lastMs = Date.UTC(9999, 11, 31);

const UsageKey = once(() => z.enum(['day', 'agent', 'model', 'provider', 'operation', 'conversation']));

const TimeZone = once(() => z.string().min(1).max(64).refine(isTimeZone, 'expected an IANA time zone, such as Europe/Berlin'));

function isTimeZone(name: string): boolean {
  try {
    Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

export const usage = {
  'usage.report': method({
    scope: 'rpc',
    risk: 'read',
    summary: 'Returns usage and cost of model calls in a time range, by day, agent, model, provider, operation or conversation.',
    description:
      'Callers with scope `rpc` see the calls made for them, `admin` all calls. Every call counts: turns, retries, fallbacks, embeddings and background work. ' +
      'Rows are sorted by day first when `day` is requested, then by cost, the most expensive first; totals are those of all rows, including those beyond `limit`. ' +
      'A day is one of `timeZone`, however many hours it has. The key `conversation` is null for calls without a kept conversation, such as those of `/v1`.',
    params: () =>
      z.strictObject({
        sinceMs: EpochMs.optional().describe('First millisecond; 30 days before the end otherwise. At most 366 days before the end.'),
        untilMs: EpochMs.max(lastMs).optional().describe('The first millisecond that no longer counts; now otherwise.'),
        timeZone: TimeZone().optional().describe("IANA name; the server's own otherwise."),
        groupBy: z
          .array(UsageKey())
          .min(1)
          .max(2)
          .refine((keys) => new Set(keys).size === keys.length, 'expected different keys')
          .default(['day']),
        agentId: AgentId.optional().describe('Only calls of this agent.'),
        limit: z.int().min(1).max(5000).default(1000),
      }),
    result: () =>
      z.strictObject({
        sinceMs: EpochMs,
        untilMs: EpochMs,
        timeZone: z.string(),
        rows: z.array(
          z.strictObject({
            keys: z.array(z.string().nullable()).describe('In the order of `groupBy`; days as YYYY-MM-DD, models as provider/modelId.'),
            ...sums(),
          }),
        ),
        totals: z.strictObject(sums()),
        truncated: z.boolean(),
      }),
    errors: ['not_found'],
    examples: [
      {
        params: { timeZone: 'Europe/Berlin', groupBy: ['day', 'model'] },
        result: {
          sinceMs: 1_787_408_000_000,
          untilMs: 1_790_000_000_000,
          timeZone: 'Europe/Berlin',
          rows: [
            {
              keys: ['2026-09-21', 'local/test-model'],
              calls: 3,
              inputTokens: 9000,
              outputTokens: 600,
              cacheReadTokens: 6000,
              cacheWriteTokens: 1500,
              costUsd: 0.021,
              savedUsd: 0.0162,
              unpriced: 0,
            },
          ],
          totals: {
            calls: 3,
            inputTokens: 9000,
            outputTokens: 600,
            cacheReadTokens: 6000,
            cacheWriteTokens: 1500,
            costUsd: 0.021,
            savedUsd: 0.0162,
            unpriced: 0,
          },
          truncated: false,
        },
      },
    ],
    since: '0.1.0',
  }),
};
