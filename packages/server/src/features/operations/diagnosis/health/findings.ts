import type { HealthFindingCode, ResultInput } from '@gatehouse/contract';
import { channelChecks } from './channel-findings.ts';
import type { HealthFacts, SessionCounts } from './facts.ts';
import { gateTotals, pipelineGate } from './gates.ts';

type Report = ResultInput<'obs.system.health'>;
export type Finding = Report['findings'][number];

/** Thresholds of the findings; `healthFindings` of the contract describes them. */
const atLeast = {
  highSessions: 10,
  highRate: 0.3,
  acuteSessions: 3,
  acuteRate: 0.5,
  autonomyRate: 0.25,
  budgetTurns: 3,
  breakerTrips: 3,
  sameError: 5,
  toolFailures: 5,
  toolRate: 0.5,
  scripts: 5,
  scriptRate: 0.5,
  voiceFailures: 3,
  voiceRate: 0.5,
  gateFires: 20,
  gateSkipRate: 0.05,
  gateFailRate: 0.2,
} as const;

/** Sessions that really went wrong: those that were answered although a tool failed do not count. */
const hard = ({ degraded, delivered }: SessionCounts) => Math.max(0, degraded - delivered);
export const rateOf = (part: number, total: number) => (total === 0 ? 0 : Math.round((part / total) * 10_000) / 10_000);
const percent = (part: number, total: number) => `${Math.round(rateOf(part, total) * 100)} %`;
const reaches = (part: number, total: number, rate: number) => total > 0 && part >= rate * total;

type Found = Omit<Finding, 'code'> | undefined;
type Check = (facts: HealthFacts) => Found;

function autonomyDegradation({ autonomy }: HealthFacts): Found {
  if (autonomy === undefined) return undefined;
  const { orphaned, denialBreakerTrips, degraded, total } = autonomy;
  if (orphaned + denialBreakerTrips === 0 || !reaches(degraded, total, atLeast.autonomyRate)) return undefined;
  return {
    detail: `${degraded} of ${total} root runs failed (${percent(degraded, total)}); ${orphaned} orphaned, ${denialBreakerTrips} stopped for denials.`,
    count: degraded,
    hint: 'gatehouse runs',
  };
}

function highRate({ sessions }: HealthFacts): Found {
  const count = hard(sessions);
  if (sessions.total < atLeast.highSessions || !reaches(count, sessions.total, atLeast.highRate)) return undefined;
  const detail = `${count} of ${sessions.total} sessions degraded (${percent(count, sessions.total)}).`;
  return { detail, count, hint: 'gatehouse call obs.trace.search --where error' };
}

function acute({ lastHour }: HealthFacts): Found {
  const count = hard(lastHour);
  if (count < atLeast.acuteSessions || !reaches(count, lastHour.total, atLeast.acuteRate)) return undefined;
  const detail = `${count} of ${lastHour.total} sessions of the last hour degraded (${percent(count, lastHour.total)}).`;
  return { detail, count, hint: 'gatehouse call obs.trace.search --since 1h --where error' };
}

const kinds = (facts: HealthFacts, wanted: readonly string[]) =>
  facts.errorKinds.reduce((sum, { kind, count }) => sum + (wanted.includes(kind) ? count : 0), 0);

function providerRefused(facts: HealthFacts): Found {
  const count = kinds(facts, ['auth', 'billing']);
  return count === 0
    ? undefined
    : { detail: `A provider refused the key or the account in ${count} turns.`, count, hint: 'gatehouse providers test PROVIDER' };
}

function budgetExhausted(facts: HealthFacts): Found {
  const count = kinds(facts, ['budget_exceeded']);
  return count < atLeast.budgetTurns ? undefined : { detail: `A budget refused ${count} turns.`, count, hint: 'gatehouse usage --by agent' };
}

function breakerTrips({ breakerTrips: count }: HealthFacts): Found {
  return count < atLeast.breakerTrips ? undefined : { detail: `Circuit breakers opened ${count} times.`, count, hint: 'gatehouse providers list' };
}

/** Kinds with a separate finding, and those that are not a fault. */
const otherwise: ReadonlySet<string> = new Set(['auth', 'billing', 'budget_exceeded', 'aborted']);

function recurringError({ errorKinds }: HealthFacts): Found {
  const top = errorKinds.find(({ kind }) => !otherwise.has(kind));
  if (top === undefined || top.count < atLeast.sameError) return undefined;
  return { detail: `${top.kind} ended ${top.count} turns.`, count: top.count, hint: `gatehouse call obs.trace.search --where "error = ${top.kind}"` };
}

function toolFailing({ tools }: HealthFacts): Found {
  const [worst] = Object.entries(tools)
    .filter(([, { ok, failed }]) => failed >= atLeast.toolFailures && reaches(failed, ok + failed, atLeast.toolRate))
    .toSorted(([a, x], [b, y]) => y.failed - x.failed || (a < b ? -1 : 1));
  if (worst === undefined) return undefined;
  const [name, { ok, failed }] = worst;
  return {
    detail: `"${name}" failed in ${failed} of ${ok + failed} calls.`,
    count: failed,
    hint: `gatehouse call obs.trace.search --where "tool = ${name}"`,
  };
}

const autonomyCount =
  (name: 'orphaned' | 'revoked' | 'killed' | 'denialBreakerTrips' | 'budgetBreaches', what: string, hint: string): Check =>
  ({ autonomy }) => {
    const count = autonomy?.[name] ?? 0;
    return count === 0 ? undefined : { detail: `${count} ${what}.`, count, hint };
  };

function scripts({ orchestrate: { total, failed } }: HealthFacts): Found {
  if (total < atLeast.scripts || !reaches(failed, total, atLeast.scriptRate)) return undefined;
  return { detail: `${failed} of ${total} scripts failed.`, count: failed, hint: 'gatehouse call obs.trace.search --where "tool = orchestrate"' };
}

function voice({ voice: { total, failed } }: HealthFacts): Found {
  if (failed < atLeast.voiceFailures || !reaches(failed, total, atLeast.voiceRate)) return undefined;
  const detail = `${failed} of ${total} requests to speak or to listen failed.`;
  return { detail, count: failed, hint: 'gatehouse call obs.trace.search --where "kind = media and error"' };
}

function wakeGates({ gates }: HealthFacts): Found {
  const { fires, skipped, failedOpen } = gateTotals(gates);
  if (fires < atLeast.gateFires) return undefined;
  const isIdle = !reaches(skipped, fires, atLeast.gateSkipRate);
  if (!isIdle && !reaches(failedOpen, fires, atLeast.gateFailRate)) return undefined;
  return { detail: `${skipped} of ${fires} wake gates saved a turn; ${failedOpen} failed.`, count: fires, hint: 'gatehouse cron list' };
}

function authoring({ authored }: HealthFacts): Found {
  const gate = pipelineGate(authored);
  if (!gate.buildAuthor) return undefined;
  return { detail: gate.reason, count: authored.small.total, hint: 'Let a larger model write graphs: `agents.<id>.model`' };
}

const below: Check = ({ servedBelow: count }) =>
  count === 0 ? undefined : { detail: `${count} turns were served with less than configured.`, count, hint: 'gatehouse providers list' };

/** Checks in the order of precedence of root causes. */
const spikes: readonly (readonly [HealthFindingCode, Check])[] = [
  ['system_autonomy_degradation', autonomyDegradation],
  ['system_high_degraded_rate', highRate],
  ['system_acute_degradation', acute],
];
const standing: readonly (readonly [HealthFindingCode, Check])[] = [
  ['config_posture:served_below_configured', below],
  ['provider_refused', providerRefused],
  ['budget_exhausted', budgetExhausted],
  ['breaker_trips', breakerTrips],
  ['recurring_error', recurringError],
  ['tool_failing', toolFailing],
  ['durable_orphaned', autonomyCount('orphaned', 'root runs were orphaned', 'gatehouse runs')],
  ['autonomy_revoked', autonomyCount('revoked', 'root runs were revoked', 'gatehouse audit --class security')],
  ['autonomy_killed', autonomyCount('killed', 'root runs were killed', 'gatehouse audit --action run.kill')],
  ['autonomy_denial_breaker', autonomyCount('denialBreakerTrips', 'turns were stopped for repeated denials', 'gatehouse approvals')],
  ['autonomy_budget_breach', autonomyCount('budgetBreaches', 'root runs reached their budget', 'gatehouse usage --by agent')],
  ...channelChecks,
  ['voice_health', voice],
  ['orchestrate_efficiency', scripts],
  ['cron_wake_gate_efficiency', wakeGates],
  ['pipeline_authoring', authoring],
];

const run = (checks: typeof spikes, facts: HealthFacts): Finding[] =>
  checks.flatMap(([code, check]) => {
    const found = check(facts);
    return found === undefined ? [] : [{ code, ...found }];
  });

/** Returns the findings in the order of their importance, at most one of each code: the first is the likely root cause. */
export function findingsOf(facts: HealthFacts): Finding[] {
  // Equal counts keep the order of the list.
  return [...run(spikes, facts), ...run(standing, facts).toSorted((a, b) => b.count - a.count)];
}

export const findingCodes: readonly HealthFindingCode[] = [...spikes, ...standing].map(([code]) => code);
