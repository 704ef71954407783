import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { onPostgres, sql, startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';
import { openInlineDb } from '../../../../kernel/db/sqlite/inline.ts';
import { answerBy, call } from '../../subagents/run/testing/delegation-model.ts';
import { autonomyMigrations } from '../migrations.ts';

test('what a request spent survives a restart of the daemon and is counted once', async () => {
  const homeDir = await mkdtemp(join(tmpdir(), 'gatehouse-test-'));
  try {
    const config = { agents: { default: { model: 'mock/mock-fast', tools: { profile: 'full' as const } } } };
    const spent: (readonly number[])[] = [];
    for (const isFirst of [true, false, false]) {
      await using server = await startTestServer({ homeDir, config });
      const over = server.heard('session:sub_agent_lifecycle_ended');
      answerBy(server.provider, ({ question, results }) => {
        if (question.includes('# Task')) return { text: 'Done.' };
        return question.includes('Go') && results.length === 0 ? call('sessions_spawn', { task: 'x' }) : { text: 'Asked.' };
      });
      if (isFirst) {
        await server.client.call('agent.execute', { message: 'Go.' });
        await expect.poll(() => over.length).toBe(1);
      } else {
        const { totals } = await server.client.call('usage.report', { groupBy: ['agent'] });
        const { runs } = await server.client.call('run.list', {});
        spent.push([totals.inputTokens + totals.outputTokens, ...runs.map(({ tokens }) => tokens)]);
      }
    }
    const [all] = spent[0] ?? [];
    expect(all).toBeGreaterThan(0);
    expect(spent).toEqual([
      [all, all],
      [all, all],
    ]);
    const [root] = await sql(homeDir, 'SELECT active_ms FROM root_run');
    expect(root).toEqual({ active_ms: expect.toSatisfy(Number.isInteger) });
  } finally {
    await rm(homeDir, { recursive: true, force: true });
  }
});

test.skipIf(onPostgres)(
  'a home of an earlier version has whole milliseconds of activity after the upgrade (SQLite alone keeps fractions)',
  async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'gatehouse-test-'));
    try {
      {
        await using _old = await openInlineDb({ dataDir, migrations: autonomyMigrations.filter(({ id }) => id < '165'), operations: [] });
      }
      using file = new DatabaseSync(join(dataDir, 'gatehouse.db'));
      const columns = file.prepare(`SELECT name FROM pragma_table_info('root_run') WHERE "notnull"`).all();
      const values = columns.map(({ name }) => (name === 'active_ms' ? 136.6 : 1));
      file.exec(`INSERT INTO root_run (${columns.map(({ name }) => name).join(', ')}) VALUES (${values.join(', ')})`);
      await using _upgraded = await openInlineDb({ dataDir, migrations: autonomyMigrations, operations: [] });
      expect(file.prepare('SELECT active_ms, typeof(active_ms) AS type FROM root_run').all()).toEqual([{ active_ms: 137, type: 'integer' }]);
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  },
);
