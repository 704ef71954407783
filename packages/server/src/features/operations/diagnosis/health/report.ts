import type { ResultInput } from '@gatehouse/contract';
import type { AutonomyCounts, GateCounts, HealthFacts } from './facts.ts';
import { findingsOf, rateOf } from './findings.ts';
import { gateTotals, pipelineGate } from './gates.ts';

type Report = ResultInput<'obs.system.health'>;

const topErrors = 10;
const topTools = 50;
const topNames = 50;

const usd = (nano: number | null) => (nano === null ? null : nano / 1e9);

/** Derives the report from the sums of a window; it never contains the time of the call. */
export function healthReport(facts: HealthFacts): Report {
  const { sessions, autonomy, gates, authored } = facts;
  const findings = findingsOf(facts);
  const [first] = findings;
  const tools = Object.entries(facts.tools);
  return {
    schemaVersion: 1,
    windowHours: facts.windowHours,
    sessions: {
      total: sessions.total,
      degraded: sessions.degraded,
      degradedRate: rateOf(sessions.degraded, sessions.total),
      deliveredWithToolErrors: sessions.delivered,
    },
    topErrorKinds: facts.errorKinds.slice(0, topErrors),
    degradedByCause: facts.degradedByCause,
    breakerTripTotal: facts.breakerTrips,
    toolStats: Object.fromEntries(tools.slice(0, topTools)),
    cost: { costUsd: usd(facts.costNano), totalTokens: facts.tokens, offSessionUsd: usd(facts.offSessionNano) },
    activity: {
      activeAgents: facts.agents.slice(0, topNames),
      activeChannels: facts.channels.slice(0, topNames),
      exitReasons: facts.exitReasons,
      turnTotal: facts.turns,
      tokenTotal: facts.tokens,
    },
    findings,
    likelyRootCause: first === undefined ? null : { code: first.code, detail: first.detail, suggestedNextSteps: [first.hint] },
    suggestedNextSteps: [...new Set(findings.map(({ hint }) => hint))].slice(0, 5),
    truncations: [
      ...(facts.errorKinds.length > topErrors ? [{ field: 'topErrorKinds', reason: `${topErrors} of ${facts.errorKinds.length} shown` }] : []),
      ...(tools.length > topTools ? [{ field: 'toolStats', reason: `${topTools} of ${tools.length} shown` }] : []),
      ...(facts.agents.length > topNames ? [{ field: 'activity.activeAgents', reason: `${topNames} of ${facts.agents.length} shown` }] : []),
      ...(facts.skipped > 0 ? [{ field: 'toolStats', reason: `the steps of ${facts.skipped} older records were not read` }] : []),
    ],
    coverage: {
      sessionSummary: { found: sessions.total > 0, rows: sessions.total },
      sessionIndex: { recordsRead: facts.read, recordsSkipped: facts.skipped },
      billing: { present: facts.costNano !== null },
    },
    ...(authored.small.total + authored.frontier.total > 0 && { pipelineAuthoringGate: pipelineGate(authored) }),
    ...(autonomy !== undefined && { autonomy: autonomyBlock(autonomy) }),
    ...(gates.length > 0 && { cronWakeGate: gateBlock(gates) }),
  };
}

function autonomyBlock(autonomy: AutonomyCounts): NonNullable<Report['autonomy']> {
  const { total, degraded, costNano, worstRootRunId, ...counts } = autonomy;
  return {
    runs: { total, degraded, degradedRate: rateOf(degraded, total) },
    ...counts,
    costUsd: usd(costNano),
    ...(worstRootRunId !== undefined && { worstRootRunId }),
  };
}

const rates = ({ fires, skipped, failedOpen }: GateCounts) => ({
  skipped,
  skipRate: rateOf(skipped, fires),
  failedOpen,
  failOpenRate: rateOf(failedOpen, fires),
});

function gateBlock(gates: HealthFacts['gates']): NonNullable<Report['cronWakeGate']> {
  const totals = gateTotals(gates);
  return {
    fires: { total: totals.fires, ...rates(totals) },
    turnsSaved: totals.turnsSaved,
    toolCalls: totals.toolCalls,
    perAgent: gates.slice(0, topNames).map((gate) => ({
      agentId: gate.agentId,
      fires: gate.fires,
      ...rates(gate),
      turnsSaved: gate.turnsSaved,
      toolCalls: gate.toolCalls,
    })),
  };
}
