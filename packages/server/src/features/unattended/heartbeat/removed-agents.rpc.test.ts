import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql, startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';

test('events of an agent that was removed while the daemon was down do not reach a later one of its id', async () => {
  const homeDir = mkdtempSync(join(tmpdir(), 'gatehouse-removed-'));
  const start = (agents: object) => startTestServer({ homeDir, config: { agents: { default: {}, ...agents } } });
  const kept = async () => (await sql(homeDir, 'SELECT text FROM heartbeat_event ORDER BY id')).map(({ text }) => text);
  await (await start({ scout: {} }))[Symbol.asyncDispose]();
  for (const agentId of ['default', 'scout'])
    await sql(
      homeDir,
      `INSERT INTO heartbeat_event (op_key, agent_id, text, source, urgent_reason, repeats, work_id, created_at_ms, tainted)
        VALUES (?, ?, ?, 'webhook', NULL, 1, NULL, ?, 1)`,
      `key of ${agentId}`,
      agentId,
      `for ${agentId}`,
      Date.now(),
    );
  rmSync(join(homeDir, 'config.yaml'));
  {
    await using server = await start({});
    await expect.poll(kept).toEqual(['for default']);
    await server.client.call('agents.create', { agentId: 'scout' });
  }
  rmSync(homeDir, { recursive: true });
});
