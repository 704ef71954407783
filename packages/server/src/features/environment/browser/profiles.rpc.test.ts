import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql, startTestServer } from '@gatehouse/testkit';
import { expect, test } from 'vitest';

test('logins and recordings of an agent that was removed while the daemon was down are deleted at the next start', async () => {
  const homeDir = mkdtempSync(join(tmpdir(), 'gatehouse-logins-'));
  const start = (agents: object) => startTestServer({ homeDir, config: { agents: { default: {}, ...agents } } });
  const kept = async () => (await sql(homeDir, 'SELECT agent_id FROM browser_profile ORDER BY agent_id')).map(({ agent_id: id }) => id);
  {
    await using server = await start({ shopper: {}, resting: {} });
    await server.client.call('agents.suspend', { agentId: 'resting' });
  }
  for (const id of ['default', 'resting', 'shopper']) await sql(homeDir, 'INSERT INTO browser_profile VALUES (?, ?, ?)', id, 'sealed', 1);
  const recordings = (agentId: string) => join(homeDir, 'data/browser-recordings', agentId);
  for (const id of ['resting', 'shopper']) mkdirSync(recordings(id), { recursive: true });
  rmSync(join(homeDir, 'config.yaml'));
  {
    await using server = await start({ resting: {} });
    expect(await kept()).toEqual(['default', 'resting']);
    expect(['resting', 'shopper'].map((id) => existsSync(recordings(id)))).toEqual([true, false]);
    await server.client.call('agents.create', { agentId: 'shopper' });
  }
  {
    await using _server = await start({});
    expect(await kept()).toEqual(['default', 'resting']);
  }
  rmSync(homeDir, { recursive: true });
});
