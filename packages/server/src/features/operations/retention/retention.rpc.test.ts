import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStepClock, sql, startTestServer, telemetrySql } from '@gatehouse/testkit';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { idBefore } from '../../../kernel/ids.ts';

const dayMs = 86_400_000;
const startMs = Date.UTC(2026, 8, 21, 12);
let homeDir: string;
beforeEach(async () => {
  homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-retention-'));
});
afterEach(() => rm(homeDir, { recursive: true, force: true }));

async function start(retention: object = {}) {
  const clock = createStepClock(startMs);
  const server = await startTestServer({ clock, homeDir, provider: { answer: () => ({ text: 'Done.' }) }, config: { retention } });
  return { ...server, clock, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}
type Started = Awaited<ReturnType<typeof start>>;

const id = (prefix: string, atMs: number, n = 0) => `${idBefore(prefix, atMs)}-7000-8000-${String(n).padStart(12, '0')}`;

const recordingOf = (ageDays: number) => id('rec', startMs - ageDays * dayMs);

/** Adds a turn with a call, an audit row, an archive and the conversation of a sub-agent of some age. */
async function addRecords(ageDays: number, n = 0): Promise<void> {
  const atMs = startMs - ageDays * dayMs + n;
  const turnId = id('tn', atMs, n);
  const ref = `cv_${ageDays}_${n}`;
  await sql(
    homeDir,
    `INSERT INTO turn (id, conversation_ref, session_key, agent_id, principal_id, origin, state, steps, input_tokens, output_tokens, trace_id, started_at_ms, ended_at_ms)
     VALUES (?, ?, 'k', 'default', 'p', 'v1', 'completed', 1, 10, 1, 't', ?, ?)`,
    turnId,
    ref,
    atMs,
    atMs + 1,
  );
  await sql(
    homeDir,
    `INSERT INTO model_call (turn_id, conversation_ref, agent_id, principal_id, provider, model, operation, outcome, input_tokens, output_tokens,
       cache_read_tokens, cache_write_tokens, estimated, cost_nano, saved_nano, latency_ms, at_ms)
     VALUES (?, ?, 'default', 'p', 'mock', 'mock-fast', 'interactive', 'ok', 10, 1, 0, 0, 0, 1000000007, 0, 5, ?)`,
    turnId,
    ref,
    atMs,
  );
  await sql(
    homeDir,
    `INSERT INTO audit (id, at_ms, principal_id, action, classification, outcome, trace_id) VALUES (?, ?, 'p', 'test.old', 'mutate', 'success', 't')`,
    id('au', atMs, n),
    atMs,
  );
  await sql(
    homeDir,
    `INSERT INTO session_archive (id, ref, agent_id, principal_id, session_key, metadata_json, messages_json, archived_at_ms)
     VALUES (?, ?, 'default', 'p', 'k', '{}', '[]', ?)`,
    id('ar', atMs, n),
    ref,
    atMs,
  );
  const [row] = await sql(
    homeDir,
    `INSERT INTO conversation (ref, tenant_id, agent_id, principal_id, kind, session_key, last_seq, message_count, turn_count, step_count, tool_call_count,
       input_tokens, output_tokens, cost_nano, created_at_ms, updated_at_ms, indexed_seq)
     VALUES (?, 'local', 'default', 'p', 'sub-agent', ?, 1, 1, 1, 1, 0, 10, 1, 0, ?, ?, 1) RETURNING id`,
    ref,
    `subagent:gateway:${ref}`,
    atMs,
    atMs,
  );
  await sql(
    homeDir,
    `INSERT INTO message (conversation_id, seq, turn_id, role, content, created_at_ms) VALUES (?, 1, ?, 'user', 'Find it', ?)`,
    Number(row?.['id']),
    turnId,
    atMs,
  );
}

async function addTrace(ageDays: number, n: number, rootRunId: string | null): Promise<void> {
  const atMs = startMs - ageDays * dayMs;
  await telemetrySql(
    homeDir,
    `INSERT INTO trace_record (seq, id, kind, trace_id, root_run_id, principal_id, started_at_ms, ended_at_ms, outcome, model_calls, tool_calls, tool_errors,
       input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, synthetic, detail_json)
     VALUES (?, ?, 'turn', ?, ?, 'p', ?, ?, 'ok', 0, 0, 0, 0, 0, 0, 0, 0, '{}')`,
    n + 1,
    id('tn', atMs, n),
    `trace${n}`,
    rootRunId,
    atMs,
    atMs,
  );
}

const count = async (table: string, where = '1 = 1') => Number((await sql(homeDir, `SELECT count(*) AS n FROM ${table} WHERE ${where}`))[0]?.['n']);
const counts = async () => ({
  turns: await count('turn'),
  calls: await count('model_call'),
  audit: await count('audit', `action = 'test.old'`),
  archives: await count('session_archive'),
  conversations: await count('conversation'),
  messages: await count('message'),
});

/** Time passes until nothing more is due. */
async function pass(server: Started, done: () => Promise<boolean>): Promise<void> {
  server.clock.advance(600_000);
  await expect
    .poll(
      async () => {
        server.clock.advance(5_000);
        return done();
      },
      { timeout: 20_000, interval: 5 },
    )
    .toBe(true);
}

/** The last 732 days: a report has 366 at most. */
const reports = (server: Started) =>
  Promise.all(
    [0, 366].map((ago) => {
      const untilMs = startMs - ago * dayMs;
      return server.client.call('usage.report', { sinceMs: untilMs - 366 * dayMs, untilMs, groupBy: ['day', 'conversation'] });
    }),
  );

test('deletes what is older than configured, and reports stay the same', async () => {
  await (await start())[Symbol.asyncDispose]();
  for (const ageDays of [790, 500, 100, 40, 1]) await addRecords(ageDays);
  for (const [n, ageDays] of [10, 40, 41, 42, 0].entries()) await addTrace(ageDays, n, n === 3 ? 'root-1' : null);
  // Old reasoning is deleted, its message is not.
  const [kept] = await sql(
    homeDir,
    `INSERT INTO conversation (ref, tenant_id, agent_id, principal_id, kind, session_key, last_seq, message_count, turn_count, step_count, tool_call_count,
       input_tokens, output_tokens, cost_nano, created_at_ms, updated_at_ms, indexed_seq)
     VALUES ('cv_chat', 'local', 'default', 'p', 'dm', 'p:desk', 2, 2, 1, 1, 0, 10, 1, 0, 1, 1, 2) RETURNING id`,
  );
  for (const [seq, ageDays] of [100, 80].entries())
    await sql(
      homeDir,
      `INSERT INTO message (conversation_id, seq, turn_id, role, content, reasoning_json, created_at_ms) VALUES (?, ?, 'tn', 'assistant', 'Yes', '{"text":"So"}', ?)`,
      Number(kept?.['id']),
      seq + 1,
      startMs - ageDays * dayMs,
    );
  await sql(
    homeDir,
    `INSERT INTO root_run (id, agent_id, principal_id, origin, profile, evicted, state, open_runs, open_graphs, open_scripts, completed_runs, failed_runs,
       graphs, completions, ended_tokens, ended_nano, spent_tokens, spent_nano, unpriced, started_at_ms, heartbeat_at_ms)
     VALUES ('root-1', 'default', 'p', 'rpc', 'full', 0, 'active', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1)`,
  );
  const recordings = join(homeDir, 'data', 'browser-recordings', 'default');
  await mkdir(recordings, { recursive: true });
  for (const ageDays of [20, 1]) for (const end of ['steps', 'pictures']) await writeFile(join(recordings, `${recordingOf(ageDays)}.${end}`), 'x');
  await using server = await start();
  // The sums are made five minutes after a start at the earliest.
  server.clock.advance(300_000);
  await expect.poll(() => count('model_call', 'rolled_up = 0')).toBe(0);
  const before = await reports(server);
  expect(before.map(({ totals }) => totals.calls)).toEqual([3, 1]);
  await pass(server, async () => (await count('conversation')) === 2);
  expect(await counts()).toEqual({ turns: 3, calls: 3, audit: 4, archives: 2, conversations: 2, messages: 3 });
  expect(await sql(homeDir, 'SELECT seq FROM message WHERE reasoning_json IS NOT NULL')).toEqual([{ seq: 2 }]);
  expect(await reports(server)).toEqual(before);
  // The oldest belongs to a root run that is active.
  expect(await telemetrySql(homeDir, 'SELECT seq FROM trace_record ORDER BY seq')).toEqual([{ seq: 1 }, { seq: 4 }, { seq: 5 }]);
  const { retention } = await server.client.call('gateway.status');
  expect(retention?.kept.map(({ name, days, deleted }) => [name, days, deleted])).toEqual([
    ['modelCalls', 400, 2],
    ['turns', 400, 2],
    ['audit', 730, 1],
    ['archives', 90, 3],
    ['reasoning', 90, 1],
    ['traces', 30, 2],
    ['channelMessages', 30, 0],
    ['channelDeliveries', 30, 0],
    ['browserRecordings', 14, 1],
    ['subAgentConversations', 30, 4],
  ]);
  expect((await readdir(recordings)).toSorted()).toEqual([`${recordingOf(1)}.pictures`, `${recordingOf(1)}.steps`]);
  expect(retention?.kept.find(({ name }) => name === 'browserRecordings')?.oldestAtMs).toBe(startMs - dayMs);
  expect(retention?.kept.find(({ name }) => name === 'turns')?.oldestAtMs).toBe(startMs - 100 * dayMs);
});

test('keeps the conversation of a sub-agent while something refers to it', async () => {
  await (await start())[Symbol.asyncDispose]();
  for (const n of [0, 1, 2]) await addRecords(40, n);
  await using server = await start();
  await sql(
    homeDir,
    `INSERT INTO background_task (id, agent_id, conversation_ref, session_key, principal_id, token_id, turn_id, trace_id, tool_name, description, begun_by, chain, state, started_at_ms, boot_id)
     VALUES ('bt_1', 'default', 'cv_40_0', 'k', 'p', 't', 'tn', 't', 'tool', '', 'rpc', 0, 'ended', 1, 'other')`,
  );
  await sql(
    homeDir,
    `INSERT INTO approval (id, digest, conversation_ref, session_key, agent_id, origin, trace_id, tool, action, reason, trust_level, params_bytes, state, created_at_ms, timeout_ms, expires_at_ms, turn_json)
     VALUES ('ap_1', 'd', 'cv_40_1', 'k', 'default', 'subagent', 't', 'tool', '', '', 'external', 0, 'pending', 1, 1, 9000000000000, '{}')`,
  );
  await pass(server, async () => (await count('conversation')) === 2);
  expect(await sql(homeDir, 'SELECT ref FROM conversation ORDER BY ref')).toEqual([{ ref: 'cv_40_0' }, { ref: 'cv_40_1' }]);
});

test('continues after a restart in the middle, with the days that are configured then', async () => {
  await (await start())[Symbol.asyncDispose]();
  await sql(
    homeDir,
    `INSERT INTO audit (id, at_ms, principal_id, action, classification, outcome, trace_id)
     WITH RECURSIVE number(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n < 449)
     SELECT 'au_' || n, CAST(? AS BIGINT) + n, 'p', 'test.old', 'mutate', 'success', 't' FROM number`,
    startMs - 800 * dayMs,
  );
  {
    await using server = await start();
    server.clock.advance(600_000);
    await expect.poll(() => count('audit', `action = 'test.old'`)).toBe(250);
  }
  {
    await using server = await start({ auditDays: 1_000 });
    await pass(server, async () => (await server.client.call('gateway.status')).retention?.lastAtMs !== undefined);
    expect(await count('audit', `action = 'test.old'`)).toBe(250);
    await server.client.call('config.set', { section: 'retention', key: 'auditDays', value: 730 });
    server.clock.advance(3_600_000);
    await expect
      .poll(async () => {
        server.clock.advance(5_000);
        return count('audit', `action = 'test.old'`);
      })
      .toBe(0);
  }
});
