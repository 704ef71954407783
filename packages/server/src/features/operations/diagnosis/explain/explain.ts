import type { ResultInput } from '@gatehouse/contract';
import { byAge, rootRunOf, type StoredRecord } from '../records.ts';
import { advice } from './advice.ts';
import { fitted, maxBytes, maxEntries, withDigests } from './bounds.ts';
import { breakersOf, failuresOf, numberSteps, offLoadsOf, toolStatsOf } from './failures.ts';
import type { Material, Reference } from './material.ts';
import { type Case, type Cause, toCase } from './rules/case.ts';
import { findCause } from './rules/rules.ts';
import { contextBudgetOf, coverageOf, learningOf, orchestrateOf, recallOf, spawnTreeOf, voiceOf, wakeGateOf } from './sections.ts';

export type ExplainedReport = ResultInput<'obs.explain'>;
type Truncations = ExplainedReport['truncations'];

interface Request extends Reference {
  readonly depth: 'summary' | 'full';
}

/** Derives the report: the same material returns the same bytes. */
export function explain(material: Material | undefined, request: Request): ExplainedReport {
  const report = material === undefined ? notFound(request) : reportOf(material, request);
  const digested = new Set<string>();
  const short = withDigests(report, digested);
  const truncations = [...short.truncations, ...[...digested].toSorted().map((field) => ({ field, reason: 'more than 256 characters' }))];
  return fitted({ ...short, truncations }, maxBytes[request.depth]);
}

function causeReport(cause: Cause | undefined): Pick<ExplainedReport, 'likelyRootCause' | 'suggestedNextSteps'> {
  if (cause === undefined) return { likelyRootCause: null, suggestedNextSteps: [] };
  const { detail, steps } = advice[cause.code];
  const suggestedNextSteps = [...steps(cause)];
  return { likelyRootCause: { code: cause.code, detail: detail(cause), suggestedNextSteps }, suggestedNextSteps };
}

function notFound({ sessionKey, traceId, rootRunId }: Request): ExplainedReport {
  const given = [sessionKey !== null && 'sessionKey', traceId !== null && 'traceId', rootRunId !== null && 'rootRunId'].filter(
    (name) => name !== false,
  );
  return {
    schemaVersion: 1,
    sessionKey,
    conversationRef: null,
    traceId,
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
    ...causeReport({ code: 'session_not_found', subject: given.join(', ') }),
    truncations: given.map((field) => ({ field, reason: 'session_not_found' })),
  };
}

function reportOf(material: Material, request: Request): ExplainedReport {
  const { session, execution, focus, totals, cut } = material;
  const about = toCase(material);
  const records = merged(session, execution);
  const steps = numberSteps(records);
  const cause = findCause(about);
  const limit = maxEntries[request.depth];
  const lists = {
    failures: failuresOf(steps, records),
    breakerTimeline: breakersOf(steps),
    offloads: offLoadsOf(steps),
  };
  const main = focus ?? execution.at(-1);
  const { inputTokens, outputTokens, cachedTokens, costNano } = totals;
  return {
    schemaVersion: 1,
    sessionKey: material.sessionKey,
    conversationRef: material.conversationRef,
    traceId: main?.traceId ?? request.traceId,
    agentId: material.agentId,
    channel: { type: main?.channelType ?? null, id: main?.channelId ?? null },
    outcome: outcomeOf(main, about),
    cost: {
      costUsd: costNano === null ? null : costNano / 1e9,
      totalTokens: inputTokens + outputTokens,
      cacheReadRatio: inputTokens === 0 ? 0 : Math.round((cachedTokens / inputTokens) * 1000) / 1000,
    },
    timing: { durationMs: durationOf(execution), turnCount: totals.turns },
    toolStats: toolStatsOf(steps),
    failures: lists.failures.slice(0, limit),
    breakerTimeline: lists.breakerTimeline.slice(-limit),
    offloads: lists.offloads.slice(-limit),
    summary: summaryOf(main, about, cause),
    ...causeReport(cause),
    truncations: truncationsOf(lists, limit, cut),
    coverage: coverageOf(material, about),
    ...sectionsOf(about, focus === undefined ? (request.rootRunId ?? undefined) : rootRunOf(focus), limit),
  };
}

function sectionsOf(about: Case, rootRunId: string | undefined, limit: number): Partial<ExplainedReport> {
  const sections = {
    contextBudget: contextBudgetOf(about),
    recall: recallOf(about),
    voice: voiceOf(about),
    learning: learningOf(about),
    orchestrate: orchestrateOf(about)?.slice(-limit),
    cronWakeGate: wakeGateOf(about),
    spawnTree: spawnTreeOf(about, rootRunId)?.slice(0, limit),
  };
  return Object.fromEntries(Object.entries(sections).filter(([, section]) => section !== undefined));
}

function truncationsOf(lists: Readonly<Record<string, readonly unknown[]>>, limit: number, cut: Material['cut']): Truncations {
  const long = Object.entries(lists).filter(([, list]) => list.length > limit);
  return [
    ...long.map(([field, list]) => ({ field, reason: `${limit} of ${list.length} shown`, pointer: 'depth: full' })),
    ...(cut.session ? [{ field: 'session', reason: 'only the newest records of the session were read', pointer: 'obs.trace.search' }] : []),
    ...(cut.execution ? [{ field: 'execution', reason: 'only some records of the execution were read', pointer: 'obs.trace.search' }] : []),
  ];
}

function merged(session: readonly StoredRecord[], execution: readonly StoredRecord[]): StoredRecord[] {
  const all = new Map([...session, ...execution].map((record) => [record.id, record]));
  return [...all.values()].toSorted(byAge);
}

/** A turn without a record is known by its row. */
function outcomeOf(main: StoredRecord | undefined, { rows }: Case): ExplainedReport['outcome'] {
  if (main !== undefined) {
    const { outcome, endReason } = main;
    const severity = outcome === 'failed' ? 'failed' : outcome === 'degraded' || outcome === 'cancelled' ? 'degraded' : 'ok';
    return { endReason, degraded: severity !== 'ok', severity };
  }
  if (rows.turn === undefined) return null;
  const { state, finishReason } = rows.turn;
  const severity = state === 'failed' || state === 'unknown' ? 'failed' : state === 'aborted' ? 'degraded' : 'ok';
  return { endReason: finishReason ?? (state === 'unknown' ? 'unknown' : null), degraded: severity !== 'ok', severity };
}

function durationOf(records: readonly StoredRecord[]): number {
  if (records.length === 0) return 0;
  return Math.max(0, Math.max(...records.map(({ endedAtMs }) => endedAtMs)) - Math.min(...records.map(({ startedAtMs }) => startedAtMs)));
}

function summaryOf(main: StoredRecord | undefined, { tools, records }: Case, cause: Cause | undefined): string {
  if (main === undefined) return 'No trace of this session is kept.';
  const failed = tools.filter(({ step }) => step.outcome === 'error' || step.outcome === 'denied').length;
  const seconds = (Math.max(0, main.endedAtMs - main.startedAtMs) / 1000).toFixed(1);
  const how = main.endReason === null || main.endReason === main.outcome ? main.outcome : `${main.outcome} (${main.endReason})`;
  const more = records.length > 1 ? ` in ${records.length} records` : '';
  const why = cause === undefined ? 'Nothing points to a problem.' : `Likely root cause: ${cause.code}.`;
  const what = main.kind === 'turn' ? 'The turn' : `The work (${main.kind})`;
  return `${what} ended ${how} after ${seconds} s: ${main.modelCalls} model calls, ${tools.length} tool calls (${failed} failed)${more}. ${why}`;
}
