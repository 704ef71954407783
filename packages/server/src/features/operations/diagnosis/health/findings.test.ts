import { type HealthFindingCode, healthFindings } from '@gatehouse/contract';
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import type { AutonomyCounts, HealthFacts, SessionCounts } from './facts.ts';
import { findingCodes, findingsOf } from './findings.ts';
import { healthReport } from './report.ts';

const quiet: HealthFacts = {
  windowHours: 24,
  sessions: { total: 0, degraded: 0, delivered: 0 },
  lastHour: { total: 0, degraded: 0, delivered: 0 },
  degradedByCause: {},
  errorKinds: [],
  exitReasons: {},
  turns: 0,
  tokens: 0,
  costNano: null,
  offSessionNano: null,
  agents: [],
  channels: [],
  tools: {},
  breakerTrips: 0,
  servedBelow: 0,
  orchestrate: { total: 0, failed: 0 },
  authored: { small: { total: 0, valid: 0 }, frontier: { total: 0, valid: 0 } },
  voice: { total: 0, failed: 0 },
  gates: [],
  autonomy: undefined,
  transports: { down: [], silent: [], paused: [] },
  deliveries: { dead: 0, unknown: 0, waiting: 0 },
  read: 0,
  skipped: 0,
};

const transports = (given: Partial<HealthFacts['transports']>): Partial<HealthFacts> => ({ transports: { ...quiet.transports, ...given } });
const deliveries = (given: Partial<HealthFacts['deliveries']>): Partial<HealthFacts> => ({ deliveries: { ...quiet.deliveries, ...given } });
const sessions = (total: number, degraded: number, delivered = 0): SessionCounts => ({ total, degraded, delivered });
const autonomy = (given: Partial<AutonomyCounts>): Partial<HealthFacts> => ({
  autonomy: {
    total: 100,
    degraded: 0,
    orphaned: 0,
    resumed: 0,
    revoked: 0,
    killed: 0,
    breakerTrips: 0,
    denialBreakerTrips: 0,
    budgetBreaches: 0,
    costNano: 0,
    worstRootRunId: undefined,
    ...given,
  },
});
const errors = (kind: string, count: number): Partial<HealthFacts> => ({ errorKinds: [{ kind, count }] });
const gate = (fires: number, skipped: number, failedOpen: number): Partial<HealthFacts> => ({
  gates: [{ agentId: 'default', fires, skipped, failedOpen, turnsSaved: skipped, toolCalls: 0 }],
});
/** Graphs of small models, next to 100 of frontier models of which 90 are valid. */
const authored = (total: number, valid: number): Partial<HealthFacts> => ({
  authored: { small: { total, valid }, frontier: { total: 100, valid: 90 } },
});

/** Each finding just below its threshold and at it. */
const thresholds: readonly (readonly [HealthFindingCode, Partial<HealthFacts>, Partial<HealthFacts>])[] = [
  ['system_autonomy_degradation', autonomy({ orphaned: 1, degraded: 24 }), autonomy({ orphaned: 1, degraded: 25 })],
  ['system_autonomy_degradation', autonomy({ degraded: 90 }), autonomy({ denialBreakerTrips: 1, degraded: 90 })],
  ['system_high_degraded_rate', { sessions: sessions(9, 9) }, { sessions: sessions(10, 9) }],
  ['system_high_degraded_rate', { sessions: sessions(100, 29) }, { sessions: sessions(100, 30) }],
  ['system_high_degraded_rate', { sessions: sessions(100, 40, 11) }, { sessions: sessions(100, 40, 10) }],
  ['system_acute_degradation', { lastHour: sessions(3, 2) }, { lastHour: sessions(3, 3) }],
  ['system_acute_degradation', { lastHour: sessions(7, 3) }, { lastHour: sessions(6, 3) }],
  ['config_posture:served_below_configured', { servedBelow: 0 }, { servedBelow: 1 }],
  ['provider_refused', errors('auth', 0), errors('billing', 1)],
  ['budget_exhausted', errors('budget_exceeded', 2), errors('budget_exceeded', 3)],
  ['breaker_trips', { breakerTrips: 2 }, { breakerTrips: 3 }],
  ['recurring_error', errors('rate_limit', 4), errors('rate_limit', 5)],
  ['recurring_error', errors('auth', 50), errors('server', 50)],
  ['tool_failing', { tools: { read: { ok: 0, failed: 4 } } }, { tools: { read: { ok: 0, failed: 5 } } }],
  ['tool_failing', { tools: { read: { ok: 6, failed: 5 } } }, { tools: { read: { ok: 5, failed: 5 } } }],
  ['durable_orphaned', autonomy({ orphaned: 0 }), autonomy({ orphaned: 1 })],
  ['autonomy_revoked', autonomy({ revoked: 0 }), autonomy({ revoked: 1 })],
  ['autonomy_killed', autonomy({ killed: 0 }), autonomy({ killed: 1 })],
  ['autonomy_denial_breaker', autonomy({ denialBreakerTrips: 0 }), autonomy({ denialBreakerTrips: 1 })],
  ['autonomy_budget_breach', autonomy({ budgetBreaches: 0 }), autonomy({ budgetBreaches: 1 })],
  ['channel_down', {}, transports({ down: ['net'] })],
  ['channel_inbound_silent', {}, transports({ silent: ['net'] })],
  ['channel_breaker_open', {}, transports({ paused: ['net'] })],
  ['delivery_dead_letters', {}, deliveries({ dead: 1 })],
  ['delivery_unknown', {}, deliveries({ unknown: 1 })],
  ['delivery_waiting', {}, deliveries({ waiting: 1 })],
  ['orchestrate_efficiency', { orchestrate: { total: 4, failed: 4 } }, { orchestrate: { total: 5, failed: 3 } }],
  ['orchestrate_efficiency', { orchestrate: { total: 100, failed: 49 } }, { orchestrate: { total: 100, failed: 50 } }],
  ['cron_wake_gate_efficiency', gate(19, 0, 0), gate(20, 0, 0)],
  ['cron_wake_gate_efficiency', gate(100, 5, 0), gate(100, 4, 0)],
  ['cron_wake_gate_efficiency', gate(100, 50, 19), gate(100, 50, 20)],
  ['voice_health', { voice: { total: 2, failed: 2 } }, { voice: { total: 6, failed: 3 } }],
  ['voice_health', { voice: { total: 7, failed: 3 } }, { voice: { total: 3, failed: 3 } }],
  ['pipeline_authoring', authored(19, 0), authored(20, 0)],
  ['pipeline_authoring', authored(100, 76), authored(100, 75)],
];

const codesOf = (facts: Partial<HealthFacts>) => findingsOf({ ...quiet, ...facts }).map(({ code }) => code);

test.each(thresholds)('%s is found at its threshold and not below', (code, below, at) => {
  expect(codesOf(below)).not.toContain(code);
  expect(codesOf(at)).toContain(code);
});

test('every finding of the contract has a threshold, and the guide names it', async () => {
  expect(new Set(Object.keys(healthFindings))).toEqual(new Set(findingCodes));
  expect(new Set(thresholds.map(([code]) => code))).toEqual(new Set(findingCodes));
  const guide = await readFile(new URL('../../../../../../../docs/guide/operations.md', import.meta.url), 'utf8');
  expect(findingCodes.filter((code) => !guide.includes(`\`${code}\``))).toEqual([]);
});

test.each([
  [authored(19, 0), false],
  [authored(20, 16), false],
  [authored(20, 15), true],
  [authored(100, 76), false],
  [authored(100, 75), true],
  [{ authored: { small: { total: 50, valid: 0 }, frontier: { total: 0, valid: 0 } } }, false],
])('the gate for authoring decides at 20 graphs and 15 points: %j is %s', (facts, buildAuthor) => {
  expect(healthReport({ ...quiet, ...facts }).pipelineAuthoringGate).toMatchObject({ buildAuthor, reason: expect.any(String) });
});

test('the root cause follows the precedence: autonomy, high rate, acute rise, then the most frequent finding', () => {
  const all: Partial<HealthFacts> = {
    ...autonomy({ orphaned: 1, degraded: 50 }),
    sessions: sessions(20, 20),
    lastHour: sessions(4, 4),
    servedBelow: 2,
    ...errors('server', 400),
  };
  const causeOf = (facts: Partial<HealthFacts>) => healthReport({ ...quiet, ...facts }).likelyRootCause?.code;
  expect(causeOf(all)).toBe('system_autonomy_degradation');
  expect(causeOf({ ...all, autonomy: undefined })).toBe('system_high_degraded_rate');
  expect(causeOf({ ...all, autonomy: undefined, sessions: sessions(9, 9) })).toBe('system_acute_degradation');
  const standing = { ...all, autonomy: undefined, sessions: sessions(9, 9), lastHour: sessions(2, 2) };
  expect(causeOf(standing)).toBe('recurring_error');
  expect(causeOf({ ...standing, errorKinds: [] })).toBe('config_posture:served_below_configured');
  expect(causeOf({ servedBelow: 3, breakerTrips: 3 })).toBe('config_posture:served_below_configured');
  expect(causeOf({})).toBeUndefined();
});
