import { createStepClock, sql, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { canary, failedCall, makeRecord, refOf, type RecordSpec, storePart, storeRecords } from '../testing/records.ts';
import { findingCodes } from './findings.ts';

const clock = createStepClock();
const hourMs = 3_600_000;
let server: TestServer;
beforeEach(async () => {
  server = await startTestServer({ clock });
});
afterEach(() => server[Symbol.asyncDispose]());

let sessions = 0;
const at = (agoMs: number) => ({ startedAtMs: clock.now() - agoMs, endedAtMs: clock.now() - agoMs + 500 });
/** Returns a record of a new session, two hours old. */
function record(spec: RecordSpec) {
  sessions += 1;
  return makeRecord({ conversationRef: refOf(sessions), sessionKey: `user${sessions}:web`, ...at(2 * hourMs), ...spec });
}
const records = (count: number, spec: RecordSpec) => Array.from({ length: count }, () => record(spec));
const failed = (kind: string, endReason = 'error'): RecordSpec => ({ outcome: 'failed', endReason, error: { kind, text: canary } });
const health = (params: { sinceHours?: number } = {}) => server.client.call('obs.system.health', params);

test('an empty window has nothing to report', async () => {
  expect(await health()).toMatchObject({
    windowHours: 24,
    sessions: { total: 0, degraded: 0, degradedRate: 0 },
    findings: [],
    likelyRootCause: null,
    truncations: [],
  });
});

test('sessions count by their newest turn in the window, without synthetic ones', async () => {
  const again = record({ ...failed('server', 'provider_degraded'), costNano: 5_000_000_000 });
  await storeRecords(
    server,
    again,
    record({ conversationRef: again.conversationRef, ...at(hourMs) }),
    record({
      outcome: 'degraded',
      endReason: 'stop',
      facts: { delivered: true },
      steps: [failedCall('read')],
      channelType: 'gateway',
      channelId: 'a',
    }),
    record({ ...failed('auth'), endReason: null, agentId: 'second' }),
    record({ ...failed('auth'), ...at(30 * hourMs) }),
    record({ ...failed('auth'), synthetic: true }),
    record({ kind: 'review', endReason: null, conversationRef: undefined, sessionKey: undefined, costNano: 2_000_000_000 }),
  );
  const report = await health();
  expect(report).toMatchObject({
    sessions: { total: 3, degraded: 2, degradedRate: 0.6667, deliveredWithToolErrors: 1 },
    degradedByCause: { stop: 1, unknown: 1 },
    topErrorKinds: [
      { kind: 'auth', count: 1 },
      { kind: 'server', count: 1 },
    ],
    toolStats: { read: { ok: 0, failed: 1 } },
    cost: { costUsd: 7.000003, totalTokens: 550, offSessionUsd: 2 },
    activity: { activeAgents: ['default', 'second'], activeChannels: ['gateway'], turnTotal: 4, tokenTotal: 550 },
    likelyRootCause: { code: 'provider_refused' },
  });
  expect(report.activity.exitReasons).toEqual({ provider_degraded: 1, stop: 2, unknown: 1 });
  expect((await health({ sinceHours: 48 })).sessions.total).toBe(4);
  expect((await health({ sinceHours: 1.5 })).sessions).toMatchObject({ total: 1, degraded: 0 });
});

test('many problems at the same time are all found, in the order of precedence, with the same bytes each time and without content', async () => {
  const startedAtMs = clock.now() - 2 * hourMs;
  for (const [n, state] of ['failed', 'revoked', 'completed', 'completed'].entries())
    await sql(
      server.homeDir,
      `INSERT INTO root_run (id, agent_id, principal_id, origin, profile, evicted, state, open_runs, open_graphs, open_scripts, completed_runs, failed_runs, graphs, completions, ended_tokens, ended_nano, spent_tokens, spent_nano, unpriced, started_at_ms, heartbeat_at_ms, active_ms)
       VALUES (?, 'default', 'token:root', 'rpc', 'default', 0, ?, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ?, 0, ?, ?, 0)`,
      `root-${n}`,
      state,
      (n + 1) * 1_000_000_000,
      startedAtMs,
      startedAtMs,
    );
  const autonomy = (event: string): RecordSpec => ({
    kind: 'autonomy',
    endReason: null,
    facts: { event },
    conversationRef: undefined,
    sessionKey: undefined,
  });
  await storeRecords(
    server,
    ...['orphaned', 'revoked', 'killed', 'denial_breaker', 'budget_breach', 'resumed'].map((event) => record(autonomy(event))),
    ...records(10, { ...failed('rate_limit', 'provider_degraded'), steps: [failedCall('read')] }),
    ...records(3, { ...failed('budget_exceeded', 'budget_exceeded'), ...at(hourMs / 2) }),
    record(failed('auth')),
    ...records(3, { ...failed('server'), steps: [{ kind: 'breaker', name: 'mock/mock-fast', facts: { event: 'opened', failures: 5 } }] }),
    record({ ...failed('server'), facts: { servedBelowConfigured: 'window' } }),
    ...records(5, { steps: [failedCall('orchestrate')] }),
    ...records(3, {
      kind: 'media',
      outcome: 'failed',
      endReason: null,
      error: { kind: 'unavailable', text: canary },
      facts: { operation: 'transcription' },
      conversationRef: undefined,
    }),
    ...records(20, { kind: 'wake_gate', endReason: null, facts: { wake: true, failedOpen: true, toolCalls: 1 }, conversationRef: undefined }),
    ...records(20, { kind: 'pipeline', endReason: null, facts: { tier: 'small', valid: false }, conversationRef: undefined }),
    record({ kind: 'pipeline', endReason: null, facts: { tier: 'frontier', valid: true }, conversationRef: undefined }),
  );
  for (const state of ['rejected', 'unknown', 'pending']) await storePart(server, { state, createdAtMs: startedAtMs });
  const report = await health();
  expect(report.likelyRootCause?.code).toBe('system_autonomy_degradation');
  const codes = report.findings.map(({ code }) => code);
  expect(codes.slice(0, 3)).toEqual(['system_autonomy_degradation', 'system_high_degraded_rate', 'system_acute_degradation']);
  // Those of transports are about connections, which are staged below.
  expect(codes.toSorted()).toEqual(findingCodes.filter((code) => !code.startsWith('channel_')).toSorted());
  expect(report.truncations).toEqual([]);
  expect(report).toMatchObject({
    breakerTripTotal: 3,
    autonomy: {
      runs: { total: 4, degraded: 2, degradedRate: 0.5 },
      orphaned: 1,
      resumed: 1,
      revoked: 1,
      killed: 1,
      denialBreakerTrips: 1,
      budgetBreaches: 1,
      costUsd: 10,
      worstRootRunId: 'root-1',
    },
    cronWakeGate: { fires: { total: 20, skipped: 0, failedOpen: 20, failOpenRate: 1 }, toolCalls: 20, perAgent: [{ agentId: 'default', fires: 20 }] },
    pipelineAuthoringGate: { buildAuthor: true },
  });
  const text = JSON.stringify(report);
  expect(JSON.stringify(await health())).toBe(text);
  expect(text).not.toContain('CANARY');
});

test('messages to chats are found at their thresholds, and only in the window', async () => {
  const found = async () => (await health()).findings.map(({ code, count, hint }) => [code, count, hint]);
  const minuteMs = 60_000;
  await storePart(server, { state: 'pending', createdAtMs: clock.now() - 9 * minuteMs });
  await storePart(server, { state: 'expired', createdAtMs: clock.now() - 30 * hourMs });
  await storePart(server, { state: 'accepted', createdAtMs: clock.now() - hourMs });
  // Quiet hours that continue are not a fault, what they held and is not on its way after their end is.
  const held = { state: 'held', errorKind: 'quiet_hours', createdAtMs: clock.now() - 9 * hourMs };
  await storePart(server, { ...held, notBeforeMs: clock.now() + hourMs });
  await storePart(server, { ...held, notBeforeMs: clock.now() - 9 * minuteMs });
  expect(await found()).toEqual([]);
  clock.advance(minuteMs);
  await storePart(server, { state: 'expired', createdAtMs: clock.now() - 2 * hourMs });
  await storePart(server, { state: 'unknown', createdAtMs: clock.now() - 900 * hourMs });
  expect(await found()).toEqual([
    ['delivery_waiting', 2, 'gatehouse channels deliveries --state pending'],
    ['delivery_dead_letters', 1, 'gatehouse channels deliveries'],
    ['delivery_unknown', 1, 'gatehouse channels deliveries --state unknown'],
  ]);
});

test('a channel that does not connect is down after five minutes, and one that is disabled never is', async () => {
  const irc = (enabled: boolean) => ({ type: 'irc' as const, enabled, host: '127.0.0.1', port: 1, tls: false, nick: 'gate' });
  await using other = await startTestServer({ clock, config: { channels: { net: irc(true), off: irc(false) } } });
  const found = async () => (await other.client.call('obs.system.health', {})).findings;
  await expect.poll(async () => (await other.client.call('channels.get', { channel_type: 'irc', channel_instance_id: 'net' })).state).toBe('errored');
  expect(await found()).toEqual([]);
  clock.advance(5 * 60_000);
  expect(await found()).toMatchObject([{ code: 'channel_down', count: 1, detail: 'Not connected: net.', hint: 'gatehouse channels list' }]);
});

test('only administrators of all agents see it', async () => {
  await expect((await server.as(['rpc'])).call('obs.system.health', {})).rejects.toMatchObject({ code: 'insufficient_scope' });
  await expect((await server.as(['admin'], { agents: ['default'] })).call('obs.system.health', {})).rejects.toMatchObject({ code: 'denied' });
  await expect(health({ sinceHours: 0 })).rejects.toMatchObject({ code: 'invalid_params' });
});
