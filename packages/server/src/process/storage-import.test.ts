import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createStepClock, startTestServer, type TestServer } from '@gatehouse/testkit';
import { findPostgres } from '@gatehouse/testkit/postgres';
import { Client } from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createBell, createObeyingModel, follow, page } from '../features/access/approvals/testing/obeying-model.ts';
import { createEmptyDatabase, type TestDatabase } from '../kernel/db/postgres/testing/test-database.ts';
import { testEngine } from '../kernel/db/testing/engine.ts';
import { examine } from './doctor.ts';
import { runStorageImport } from './maintenance.ts';

/** The install key of test servers. */
const env = { GATEHOUSE_MASTER_KEY: '07'.repeat(32) };
let homeDir: string;
let database: TestDatabase;
let lines: Record<string, unknown>[];

async function importHome(
  to: string | undefined = '${DATABASE_URL}',
  more: Record<string, string> = {},
): Promise<Record<string, unknown> | undefined> {
  lines = [];
  await runStorageImport(homeDir, to, { ...env, DATABASE_URL: database.url, ...more }, (line) => void lines.push(line as Record<string, unknown>));
  return lines.at(-1);
}

// It starts servers on both engines, whatever the run is for.
describe.skipIf(findPostgres() === undefined || testEngine === 'postgres')('storage import', () => {
  beforeEach(async () => {
    homeDir = mkdtempSync(join(tmpdir(), 'gatehouse-import-'));
    database = await createEmptyDatabase();
  });
  afterEach(async () => {
    await database[Symbol.asyncDispose]();
    rmSync(homeDir, { recursive: true, force: true });
  });

  test('moves everything that a daemon knows, and pending work continues', { timeout: 60_000 }, async () => {
    const clock = createStepClock(Date.UTC(2026, 8, 21, 12));
    let bells = 0;
    const model = createObeyingModel();
    const full = { model: 'mock/mock-fast', tools: { profile: 'full' as const } };
    const start = async (storage: { driver?: 'postgres'; url?: string; poolSize?: number } = {}): Promise<TestServer> => {
      const server = await startTestServer({
        clock,
        homeDir,
        tools: [page, createBell(() => (bells += 1))],
        config: {
          embedding: { provider: 'hashing' },
          agents: { default: full, helper: { ...full, budgets: { perDayUsd: 5 } } },
          storage,
        },
      });
      server.provider.setAnswer(({ body }) => model.answer(body));
      return server;
    };
    const fill = async ({ client, as }: TestServer): Promise<string> => {
      for (const agentId of ['default', 'helper'])
        for (const message of ['The walrus deployed a harpsichord', 'Nul \u0000 and snow \u2603'])
          await client.call('agent.execute', { agentId, message, sessionKey: { userId: 'ada', channelId: agentId } });
      await client.call('memory.store', { content: 'The backup runs at four.', tags: ['ops'] });
      await client.call('memory.store', { content: 'The garden has a well.', pinned: true });
      await expect.poll(async () => (await client.call('memory.embeddingCache', {})).pendingEntries).toBe(0);
      await client.call('graph.save', { nodes: [{ node_id: 'facts', task: 'Collect facts.' }], label: 'Saved' });
      const { graphId } = await client.call('graph.execute', { nodes: [{ node_id: 'facts', task: 'Collect facts.' }], label: 'Tides' });
      await expect.poll(() => client.call('graph.status', { graphId })).toMatchObject({ status: 'completed' });
      await client.call('agents.create', { agentId: 'made' });
      // Its call waits for a person, over the move to the other engine.
      const schedule = { kind: 'every', everyMs: 86_400_000 * 365 } as const;
      await client.call('cron.add', { name: 'ring', schedule, payload: { kind: 'agent_turn', message: follow(['page', {}], ['bell', {}]) } });
      await client.call('cron.run', { jobName: 'ring' });
      await expect.poll(async () => (await client.call('admin.approval.pending', {})).requests).toHaveLength(1);
      await expect.poll(async () => (await client.call('cron.runs', { jobName: 'ring' })).runs[0]).toMatchObject({ waiting: { kind: 'approval' } });
      return (await as(['rpc'])).token;
    };
    const read = async ({ client }: TestServer) => ({
      sessions: await client.call('session.list', {}),
      histories: await Promise.all(
        (await client.call('session.list', {})).sessions.map(({ conversationRef }) => client.call('session.export', { conversationRef })),
      ),
      memories: await client.call('memory.browse', {}),
      agents: await client.call('agents.list', {}),
      jobs: await client.call('cron.list', {}),
      runs: await client.call('cron.runs', { jobName: 'ring' }),
      graphs: await client.call('graph.runs', {}),
      saved: await client.call('graph.list', {}),
      tokens: await client.call('tokens.list', {}),
      approvals: (await client.call('admin.approval.pending', {})).requests,
      inbox: await client.call('inbox.list', {}),
      usage: await client.call('usage.report', { groupBy: ['agent', 'model'] }),
    });

    let token: string;
    let before: Awaited<ReturnType<typeof read>>;
    {
      await using server = await start();
      token = await fill(server);
      clock.advance(2_000);
      await expect.poll(unindexed).toBe(0);
      before = await read(server);
      expect(await importHome()).toMatchObject({
        error: { message: expect.stringMatching(new RegExp(`Another daemon \\(pid ${process.pid} .*at http`)) },
      });
    }
    // A read without rows would be equal for any copy.
    const { histories, memories, jobs, runs, graphs, saved, tokens, approvals, inbox } = before;
    const counts = [histories, jobs.jobs, runs.runs, graphs.runs, saved.entries, tokens.tokens, inbox.messages].map((rows) => rows.length);
    expect(Math.min(...counts)).toBeGreaterThan(0);
    expect([memories.total, approvals.length]).toEqual([2, 1]);

    const outcome = await importHome();
    expect(outcome).toMatchObject({
      result: {
        imported: true,
        place: expect.stringMatching(/^postgres:\/\/127\.0\.0\.1:\d+\/d_\w+$/),
        replacedTexts: 0,
        dataDir: join(homeDir, 'data'),
        folders: [join(homeDir, 'media')],
        sums: { 'model_call.cost_nano': expect.stringMatching(/^[1-9]\d*$/) },
      },
    });
    expect(lines[0]).toMatchObject({ progress: { done: expect.any(Number), total: expect.any(Number), phase: 'copy', table: expect.any(String) } });
    const last = lines.at(-2)?.['progress'] as { readonly done: number; readonly total: number } | undefined;
    expect(last).toMatchObject({ phase: 'compare', done: last?.total });
    await expectSameTables();
    expect(await importHome()).toMatchObject({ result: { imported: false } });

    await expect(start()).rejects.toMatchObject({ reason: 'imported', message: expect.stringContaining('storage.driver') });

    expect((await examine(homeDir, {})).find(({ name }) => name === 'database')).toMatchObject({
      status: 'fail',
      detail: expect.stringContaining('was imported'),
    });

    await using server = await start({ driver: 'postgres', url: database.url, poolSize: 4 });
    expect(await read(server)).toEqual(before);
    const withToken = await fetch(`${server.url}/rpc`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'session.list', params: {} }),
    });
    expect(await withToken.json()).toMatchObject({ result: {} });
    clock.advance(2_000);
    await expect.poll(() => askPostgres(indexed)).toEqual(await askPostgres(`SELECT id FROM message WHERE content <> '' ORDER BY id`));
    await expect.poll(async () => (await server.client.call('session.search', { query: 'harpsichord' })) as object).toMatchObject({ total: 2 });
    expect((await server.client.call('memory.search', { query: 'when does the backup run?', limit: 1 })).results).toMatchObject([
      { content: 'The backup runs at four.', explain: { textRank: 1 } },
    ]);
    await server.client.call('agent.execute', { message: 'Go on', sessionKey: { userId: 'ada', channelId: 'default' } });
    await server.client.call('admin.approval.resolveAll', { approved: true });
    await expect.poll(async () => (await server.client.call('cron.runs', { jobName: 'ring' })).runs[0]).toMatchObject({ status: 'completed' });
    expect(bells).toBe(1);
  });

  test('says what is wrong with its target', async () => {
    mkdirSync(join(homeDir, 'data'), { mode: 0o700 });
    expect(await importHome('mysql://x')).toMatchObject({ error: { message: expect.stringContaining('--to: expected postgres://') } });
    expect(await importHome('${NO_SUCH}')).toMatchObject({ error: { message: expect.stringContaining('NO_SUCH is not set') } });
    const secret = await importHome('postgres://u:s3cr3t@127.0.0.1/x');
    expect(secret).toMatchObject({ error: { message: expect.stringContaining('other users can read') } });
    expect(JSON.stringify(secret)).not.toContain('s3cr3t');
    expect(await importHome(undefined, { DATABASE_URL: '' })).toMatchObject({ error: { message: expect.stringContaining('DATABASE_URL') } });
    lines = [];
    await runStorageImport(homeDir, undefined, env, (line) => void lines.push(line as Record<string, unknown>));
    expect(lines).toMatchObject([{ error: { message: expect.stringContaining('set storage.url in') } }]);
    writeFileSync(join(homeDir, 'config.yaml'), 'storage: { url: "${DATABASE_URL}" }\n', { mode: 0o600 });
    await runStorageImport(homeDir, undefined, { ...env, DATABASE_URL: database.url }, (line) => void lines.push(line as Record<string, unknown>));
    expect(lines.at(-1)).toMatchObject({ error: { code: 'not_found', message: expect.stringContaining('There is no database') } });
    await runStorageImport(homeDir, '${DATABASE_URL}', { DATABASE_URL: database.url }, (line) => void lines.push(line as Record<string, unknown>));
    expect(lines.at(-1)).toMatchObject({ error: { message: expect.stringContaining('install.key is missing') } });
  });

  test('uses TLS as config.yaml demands, also with --to', async () => {
    mkdirSync(join(homeDir, 'data'), { mode: 0o700 });
    writeFileSync(join(homeDir, 'config.yaml'), 'storage: { ssl: true }\n', { mode: 0o600 });
    expect(await importHome()).toMatchObject({ error: { message: expect.stringContaining('does not support SSL') } });
    const inClear = await importHome('${DATABASE_URL}', { DATABASE_URL: `${database.url}?sslmode=disable` });
    expect(inClear).toMatchObject({ error: { message: expect.stringContaining('--to: names sslmode') } });
  });
});

const indexed = 'SELECT rowid AS id FROM message_fts ORDER BY rowid';

function unindexed(): unknown {
  using db = new DatabaseSync(join(homeDir, 'data', 'gatehouse.db'), { readOnly: true });
  return db.prepare('SELECT count(*) AS count FROM conversation WHERE indexed_seq < last_seq').get()?.['count'];
}

/** Reads both engines by other means than the import does. */
async function expectSameTables(): Promise<void> {
  for (const file of ['gatehouse.db', 'telemetry.db']) {
    using db = new DatabaseSync(join(homeDir, 'data', file), { readOnly: true });
    const found = db.prepare(`SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'`).all();
    const tables = found.map(({ name }) => String(name)).filter((name) => name !== 'schema_migration' && name !== 'installation');
    expect(tables.length).toBeGreaterThan(1);
    for (const name of tables) {
      const rows = await askPostgres(`SELECT * FROM "${name}"`);
      expect(rows.map(plain).toSorted(), name).toEqual(db.prepare(`SELECT * FROM "${name}"`).all().map(plain).toSorted());
    }
  }
  expect(await askPostgres('SELECT sum(indexed_seq)::int AS sum FROM conversation')).toEqual([{ sum: 0 }]);
  expect(await askPostgres(indexed)).toEqual([]);
}

async function askPostgres(statement: string): Promise<object[]> {
  const client = new Client({ connectionString: database.url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end();
  }
}

/** A row of either engine, without what the end of an import sets. */
function plain(row: object): string {
  const values = Object.entries<unknown>({ ...row, indexed_seq: null }).map(([name, value]) => [
    name,
    value instanceof Uint8Array ? value.toHex() : value === null ? null : String(value),
  ]);
  return JSON.stringify(values.toSorted());
}
