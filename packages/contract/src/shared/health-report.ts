import * as z from 'zod';
import { once } from '../once.ts';
import { Truncation } from './explain-report.ts';
import { HealthFindingName } from './root-cause.ts';

const count = z.int().min(0);
const rate = z.number().min(0).max(1);
const usd = z.number().nullable();
const gateCounts = { skipped: count, skipRate: rate, failedOpen: count, failOpenRate: rate };

/** Triage over all sessions of a window: counts, codes and ids, never content, and never the time of the call. */
export const SystemHealthReport = once(() =>
  z
    .strictObject({
      schemaVersion: z.literal(1),
      windowHours: z.number(),
      sessions: z
        .strictObject({ total: count, degraded: count, degradedRate: rate, deliveredWithToolErrors: count })
        .describe('By the newest turn of each session in the window. Findings do not count sessions that were answered although a tool failed.'),
      topErrorKinds: z.array(z.strictObject({ kind: z.string(), count })),
      degradedByCause: z.record(z.string(), count).describe('Degraded sessions by end reason; `unknown` where there is none.'),
      breakerTripTotal: count,
      toolStats: z.record(z.string(), z.strictObject({ ok: count, failed: count })),
      cost: z.strictObject({ costUsd: usd, totalTokens: count, offSessionUsd: usd.describe('Of work outside of sessions, included in `costUsd`.') }),
      activity: z.strictObject({
        activeAgents: z.array(z.string()),
        activeChannels: z.array(z.string()),
        exitReasons: z.record(z.string(), count),
        turnTotal: count,
        tokenTotal: count,
      }),
      findings: z.array(z.strictObject({ code: HealthFindingName(), detail: z.string(), count, hint: z.string() })),
      likelyRootCause: z.strictObject({ code: HealthFindingName(), detail: z.string(), suggestedNextSteps: z.array(z.string()) }).nullable(),
      suggestedNextSteps: z.array(z.string()),
      truncations: z.array(Truncation()),
      coverage: z
        .strictObject({
          sessionSummary: z.strictObject({ found: z.boolean(), rows: count }),
          sessionIndex: z.strictObject({ recordsRead: count, recordsSkipped: count }),
          billing: z.strictObject({ present: z.boolean() }),
        })
        .optional(),
      pipelineAuthoringGate: z
        .strictObject({ buildAuthor: z.boolean(), reason: z.string() })
        .optional()
        .describe(
          'Whether an author for small models would pay: at least 20 graphs of small models, valid at least 15 points less often than of frontier models.',
        ),
      autonomy: z
        .strictObject({
          runs: z.strictObject({ total: count, degraded: count, degradedRate: rate }),
          orphaned: count,
          resumed: count,
          revoked: count,
          killed: count,
          breakerTrips: count,
          denialBreakerTrips: count,
          budgetBreaches: count,
          costUsd: usd,
          worstRootRunId: z.string().optional().describe('The failed root run that cost most.'),
        })
        .optional(),
      cronWakeGate: z
        .strictObject({
          fires: z.strictObject({ total: count, ...gateCounts }),
          turnsSaved: count,
          toolCalls: count,
          perAgent: z.array(z.strictObject({ agentId: z.string(), fires: count, ...gateCounts, turnsSaved: count, toolCalls: count })),
        })
        .optional(),
    })
    .meta({ id: 'SystemHealthReport' }),
);
