import { rootCauses, type RootCauseCode, unusedRootCauses } from '@gatehouse/contract';
import { sql, startTestServer, type TestServer } from '@gatehouse/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { canary, failedCall, makeRecord, refOf, type RecordSpec, storePart, storeRecords } from '../testing/records.ts';
import { stagedFailures } from '../testing/staged-failures.ts';
import { rules } from './rules/rules.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  await server.client.call('memory.store', { content: 'Cats sleep a lot' });
});
afterAll(() => server[Symbol.asyncDispose]());

const explainText = async (params: Parameters<typeof server.client.call<'obs.explain'>>[1]) =>
  JSON.stringify(await server.client.call('obs.explain', params));

let sessions = 10_000;
/** Stores records of a new session, each with a separate trace unless they name one. */
async function stage(...specs: readonly RecordSpec[]) {
  sessions += 1;
  const session = { conversationRef: refOf(sessions), sessionKey: `user${sessions}:web` };
  const records = specs.map((spec) => makeRecord({ ...session, ...spec }));
  await storeRecords(server, ...records);
  const last = records.at(-1);
  if (last === undefined) throw new Error('stage at least one record');
  return { ...session, records, last };
}

test.each(stagedFailures)('$title: $code', async ({ code, records }) => {
  const { sessionKey, conversationRef } = await stage(...records);
  const text = await explainText({ sessionKey });
  const report = JSON.parse(text);
  expect(report.likelyRootCause?.code ?? null).toBe(code);
  expect(report).toMatchObject({ sessionKey, conversationRef, schemaVersion: 1 });
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(6 * 1024);
  expect(await explainText({ sessionKey })).toBe(text);
  const full = await explainText({ sessionKey, depth: 'full' });
  for (const one of [text, full]) expect(one).not.toMatch(/CANARY|Oma/u);
  if (code !== null) expect(report.suggestedNextSteps).not.toEqual([]);
});

test('every code has a rule, or a reason why it has none, and is staged here or below', () => {
  const stagedElsewhere: readonly RootCauseCode[] = [
    'session_not_found',
    'sub_agent_failed',
    'graph_node_failed',
    'approval_expired',
    'learned_skill_failing',
    'delivery_waiting',
  ];
  const ruled = new Set<string>(rules.map(({ code }) => code));
  const staged = new Set<string>([...stagedFailures.flatMap(({ code }) => (code === null ? [] : [code])), ...stagedElsewhere]);
  const all = Object.keys(rootCauses);
  expect(all.filter((code) => code !== 'session_not_found' && !ruled.has(code))).toEqual(Object.keys(unusedRootCauses));
  expect(all.filter((code) => !staged.has(code))).toEqual(Object.keys(unusedRootCauses));
  const order = rules.map(({ code }) => all.indexOf(code));
  expect(order).toEqual(order.toSorted((a, b) => a - b));
});

test('an unknown reference is a report, not an error; none at all is refused', async () => {
  const text = await explainText({ traceId: 'e'.repeat(32), rootRunId: 'root-none' });
  expect(JSON.parse(text)).toMatchObject({
    traceId: 'e'.repeat(32),
    outcome: null,
    likelyRootCause: { code: 'session_not_found', detail: 'Nothing is stored under the given traceId, rootRunId.' },
    truncations: [
      { field: 'traceId', reason: 'session_not_found' },
      { field: 'rootRunId', reason: 'session_not_found' },
    ],
  });
  await expect(server.client.call('obs.explain', {})).rejects.toMatchObject({ code: 'invalid_params' });
});

test('a session without telemetry is found and not flagged', async () => {
  await server.client.call('config.patch', { path: 'observability.persistence.enabled', value: false, confirm: true });
  await server.client.call('agent.execute', { message: 'Hello', sessionKey: 'silent:web' });
  await server.client.call('config.patch', { path: 'observability.persistence.enabled', value: true, confirm: true });
  const report = await server.client.call('obs.explain', { sessionKey: 'silent:web' });
  expect(report).toMatchObject({
    sessionKey: 'silent:web',
    outcome: { endReason: 'stop', severity: 'ok', degraded: false },
    likelyRootCause: null,
    coverage: { trajectory: { found: false, records: 0 }, rollup: { present: true } },
  });
});

test('a trace or root run is explained even when the session continued; synthetic and foreign records are left out', async () => {
  const bad: RecordSpec = { outcome: 'failed', endReason: 'error', error: { kind: 'auth' }, rootRunId: 'root-3', traceId: '3'.repeat(32) };
  const { sessionKey, conversationRef } = await stage(bad, {});
  const codeOf = async (params: Parameters<typeof explainText>[0]) => JSON.parse(await explainText(params)).likelyRootCause?.code ?? null;
  expect(await codeOf({ sessionKey })).toBe(null);
  expect(await codeOf({ sessionKey: conversationRef })).toBe(null);
  expect(await codeOf({ traceId: '3'.repeat(32) })).toBe('provider_credentials_refused');
  expect(await codeOf({ rootRunId: 'root-3' })).toBe('provider_credentials_refused');
  const hidden = await stage({ ...bad, traceId: '4'.repeat(32), rootRunId: 'root-4', synthetic: true });
  expect(await codeOf({ sessionKey: hidden.sessionKey })).toBe('session_not_found');
  expect(await codeOf({ sessionKey: hidden.sessionKey, includeSynthetic: true })).toBe('provider_credentials_refused');
  const limited = await server.as(['admin'], { agents: ['other'] });
  expect((await limited.call('obs.explain', { sessionKey })).likelyRootCause?.code).toBe('session_not_found');
});

test('the failure of a sub-agent is explained by how its own turn ended', async () => {
  const { sessionKey } = await stage(
    { rootRunId: 'root-5' },
    {
      rootRunId: 'root-5',
      conversationRef: refOf(5),
      sessionKey: 'sub:5',
      refs: { runId: 'sr_5' },
      outcome: 'failed',
      endReason: 'error',
      error: { kind: 'billing' },
    },
  );
  const report = await server.client.call('obs.explain', { sessionKey });
  expect(report.likelyRootCause).toMatchObject({ code: 'provider_billing_refused', detail: expect.stringContaining('in sr_5') });
});

test('a huge session fits into 6 KiB, with every cut named, and long texts are digests', async () => {
  const { sessionKey } = await stage(
    ...Array.from({ length: 60 }, (_, n) => ({
      outcome: 'degraded' as const,
      channelType: 'gateway',
      channelId: 'c'.repeat(300),
      refs: { runId: `sr_${n}` },
      steps: [
        ...Array.from({ length: 6 }, (__, m) => failedCall(`tool_with_a_rather_long_name_${m}_${n % 7}`)),
        { kind: 'breaker' as const, name: 'mock/mock-fast', facts: { event: 'opened', failures: n } },
        { kind: 'off_load' as const, name: 'read', facts: { chars: 40_000, pointer: `.gatehouse/offload/${'p'.repeat(200)}${n}` } },
      ],
    })),
  );
  const summary = await explainText({ sessionKey });
  const full = await explainText({ sessionKey, depth: 'full' });
  expect(Buffer.byteLength(summary)).toBeLessThanOrEqual(6 * 1024);
  expect(full.length).toBeGreaterThan(10 * 1024);
  const report = JSON.parse(summary);
  expect(report.channel.id).toMatch(/^sha256:[0-9a-f]{16} \(300 characters\)$/);
  const fields = report.truncations.map(({ field }: { field: string }) => field);
  expect(fields).toEqual(expect.arrayContaining(['failures', 'toolStats', 'session', 'channel.id']));
  const { failures } = JSON.parse(full);
  expect(failures.length).toBe(200);
  const order = failures.map(({ seq }: { seq: number }) => seq);
  expect(order).toEqual(order.toSorted((a: number, b: number) => b - a));
});

test('every optional section has a source record', async () => {
  const steps: RecordSpec['steps'] = [
    {
      kind: 'context',
      name: 'model context',
      facts: {
        windowTokens: 4000,
        rawWindowTokens: 8000,
        systemTokens: 10,
        historyTokens: 20,
        inputTokens: 30,
        outputHeadroom: 40,
        messagesOut: 3,
        verdict: 'exhausted',
      },
    },
    { kind: 'recall', name: 'memory', facts: { recalls: 2, zeroHits: 1, finalCount: 4, lanes: 'fts,vector', reranker: false } },
    { kind: 'skill', name: 'baking', facts: { injected: true, used: true } },
    { kind: 'outcome', name: 'turn', facts: { resolved: true, outcome: 'failure', sources: 'feedback,tools' } },
    {
      kind: 'tool',
      name: 'orchestrate',
      ms: 70,
      facts: { runId: 'or_1', leaseId: 'ls_1', exitCode: 0, estSavedTokens: 90, savedRatio: 0.5, resultRefs: 1, resultRefBytes: 9 },
    },
    { kind: 'tool', name: 'read', parent: 4, facts: { capability: 'orch:read' } },
    { kind: 'tool', name: 'read', parent: 4, facts: { capability: 'orch:read' } },
    { kind: 'tool', name: 'exec', parent: 4, outcome: 'denied' },
  ];
  const gate: RecordSpec = { kind: 'wake_gate', endReason: null, facts: { wake: true, toolCalls: 2, turnsSaved: 1 }, refs: { jobId: 'cj_1' } };
  const spoken: RecordSpec = {
    kind: 'media',
    endReason: null,
    model: 'openai/tts-1',
    costNano: 1_500,
    facts: { operation: 'speech', provider: 'openai', keyless: false, latencyMs: 30 },
  };
  const picture: RecordSpec = { kind: 'media', endReason: null, facts: { operation: 'imageGeneration', provider: 'fal', keyless: false } };
  const { sessionKey, conversationRef } = await stage(
    { steps, endReason: 'context_exhausted', outcome: 'failed', rootRunId: 'root-6' },
    spoken,
    picture,
    gate,
  );
  await sql(
    server.homeDir,
    `INSERT INTO lease (id, root_run_id, parent_lease_id, run_id, agent_id, principal_id, caps, issued_at_ms, expires_at_ms, revoked, boot_id) VALUES ('ls_6', 'root-6', NULL, 'sr_6', 'default', 'token:root', 'orch:read,spawn', 1, 2, 0, '')`,
  );
  await sql(
    server.homeDir,
    `INSERT INTO skill_stat (agent_id, owner, name, uses, failures, streak, standing, at_ms) VALUES ('default', '', 'baking', 5, 4, -4, 'demoted', 1)`,
  );
  await storeRecords(
    server,
    makeRecord({ rootRunId: 'root-6', refs: { runId: 'sr_6', leaseId: 'ls_6' }, conversationRef: refOf(6), steps: [{ kind: 'tool', name: 'grep' }] }),
  );
  const report = await server.client.call('obs.explain', { sessionKey: conversationRef, depth: 'full' });
  expect(report).toMatchObject({
    sessionKey,
    contextBudget: {
      windowTokens: 4000,
      rawContextWindowTokens: 8000,
      assembledInputTokens: 30,
      outputHeadroom: 40,
      keptCount: 3,
      verdict: 'exhausted',
    },
    recall: { recalls: 2, zeroHits: 1, lastLanes: 'fts,vector', lastFinalCount: 4, rerankerAvailable: false },
    voice: { provider: 'openai', keyless: false, model: 'tts-1', costUsd: 0.0000015, source: 'speech', outcome: 'ok' },
    learning: {
      outcomeResolved: true,
      outcome: 'failure',
      sources: ['feedback', 'tools'],
      skillsUsed: ['baking'],
      skillFailures: ['baking'],
      synthesisAbstained: false,
    },
    orchestrate: [
      {
        runId: 'or_1',
        leaseId: 'ls_1',
        outcome: 'success',
        durationMs: 70,
        exitCode: 0,
        toolCalls: [
          { tool: 'exec', capability: null, decision: 'deny', count: 1 },
          { tool: 'read', capability: 'orch:read', decision: 'allow', count: 2 },
        ],
        resultRefs: { count: 1, bytes: 9 },
        savings: { estSavedTokens: 90, savedRatio: 0.5 },
      },
    ],
    cronWakeGate: { jobId: 'cj_1', wake: true, toolCalls: 2, estTurnsSaved: 1 },
    spawnTree: [{ leaseId: 'ls_6', rootRunId: 'root-6', runId: 'sr_6', caps: ['orch:read', 'spawn'], toolsInvoked: ['grep'], tokensUsed: 110 }],
    coverage: { trajectory: { found: true }, toolStats: { reconciled: true, divergentTools: [] } },
  });
});

test('a failing skill is named when nothing else explains the turn', async () => {
  await sql(
    server.homeDir,
    `INSERT INTO skill_stat (agent_id, owner, name, uses, failures, streak, standing, at_ms) VALUES ('skilled', '', 'sums', 9, 3, -3, 'demoted', 1), ('skilled', '', 'tables', 9, 2, -2, 'neutral', 1)`,
  );
  const used = (name: string): RecordSpec => ({ agentId: 'skilled', steps: [{ kind: 'skill', name, facts: { injected: true, used: true } }] });
  const codeOf = async (name: string) => JSON.parse(await explainText({ sessionKey: (await stage(used(name))).sessionKey })).likelyRootCause?.code;
  expect(await codeOf('sums')).toBe('learned_skill_failing');
  expect(await codeOf('tables')).toBeUndefined();
});

test('what became of the answer in a chat is a reason, also after somebody decided about it', async () => {
  const codeAndDetail = async (sessionKey: string) => {
    const text = await explainText({ sessionKey });
    expect(text).not.toContain('CANARY');
    const { code, detail, suggestedNextSteps } = JSON.parse(text).likelyRootCause ?? {};
    return [code, detail, suggestedNextSteps];
  };
  const sent = async (state: string, ...more: readonly RecordSpec[]) => {
    const { sessionKey, conversationRef, records } = await stage({}, ...more);
    await storePart(server, { id: `ob_${state}-01`, state, createdAtMs: 1, conversationRef, turnId: records[0]?.id ?? '' });
    return codeAndDetail(sessionKey);
  };
  const failed: RecordSpec = { kind: 'delivery', outcome: 'failed', endReason: 'unknown', refs: { deliveryId: 'ob_accepted-01' } };
  expect(await sent('accepted', failed)).toEqual([undefined, undefined, undefined]);
  expect(await sent('pending')).toEqual([
    'delivery_waiting',
    '1 part of the answer wait to be sent by the channel net.',
    ['gatehouse channels list', 'gatehouse channels deliveries net --state pending'],
  ]);
  expect(await sent('unknown')).toEqual([
    'delivery_failed',
    'A delivery failed: ob_unknown-01 (unknown).',
    ['gatehouse channels deliveries', 'gatehouse channels resend ob_unknown-01'],
  ]);
});

test('voice says what became of the last recording or speech of the turn, without content', async () => {
  const media = (facts: NonNullable<RecordSpec['facts']>, more: RecordSpec = {}): RecordSpec => ({ kind: 'media', endReason: null, facts, ...more });
  const heard = media(
    { operation: 'transcription', provider: 'whisper', keyless: true, durationMs: 2500 },
    { model: 'whisper/base', costNano: 0, traceId: 'cd'.repeat(16) },
  );
  const broken = media(
    { operation: 'speech', provider: 'openai', keyless: false },
    { outcome: 'failed', error: { kind: 'unavailable', text: canary }, model: null },
  );
  const voiceOf = async (...specs: readonly RecordSpec[]) => {
    const text = await explainText({ sessionKey: (await stage(...specs)).sessionKey });
    expect(text).not.toContain(canary);
    return JSON.parse(text).voice;
  };
  // A voice note is read before the turn that answers it, in its trace.
  expect(await voiceOf(heard, { traceId: 'cd'.repeat(16) })).toEqual({
    provider: 'whisper',
    keyless: true,
    model: 'base',
    durationMs: 2500,
    costUsd: 0,
    source: 'transcription',
    outcome: 'ok',
  });
  expect(await voiceOf({}, broken)).toEqual({ provider: 'openai', keyless: false, source: 'speech', outcome: 'failed', errorKind: 'unavailable' });
  expect(await voiceOf({}, media({ operation: 'speech' }, { outcome: 'cancelled', error: { kind: 'cancelled' } }))).toBeUndefined();
  // That of an earlier turn is not part of the report.
  expect(await voiceOf({}, broken, {})).toBeUndefined();
});

test('steps that were not kept show as a difference to the counts of the record', async () => {
  const { sessionKey } = await stage({ steps: [{ kind: 'tool', name: 'read' }], toolCalls: 3, toolErrors: 1, droppedSteps: 2 });
  const { coverage } = await server.client.call('obs.explain', { sessionKey });
  expect(coverage?.toolStats).toMatchObject({
    reconciled: false,
    divergentTools: [{ tool: '*', rollup: { ok: 2, failed: 1 }, trajectory: { ok: 1, failed: 0 } }],
  });
});
